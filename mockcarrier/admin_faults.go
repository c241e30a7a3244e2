package mockcarrier

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// faultReport is a rule in force, as the admin API has it. Its ID is its place
// among all rules since the last reset, from 1.
type faultReport struct {
	ID int `json:"id"`
	ruleReport
	Does string `json:"does"`
	For  string `json:"for"`
}

// current returns the rules in force in the order of their making.
func (rs *rules) current(now time.Time) []faultReport {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	list := []faultReport{}
	for i, r := range rs.all {
		if slices.Contains(rs.active, r) && r.inForce(now) {
			list = append(list, faultReport{i + 1, ruleReport{r.clone(), r.seen, r.fired}, r.String(), r.scope()})
		}
	}
	return list
}

// end ends the rule with that ID, and says whether it was in force.
func (rs *rules) end(id int) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if id < 1 || id > len(rs.all) {
		return false
	}
	before := len(rs.active)
	rs.active = slices.DeleteFunc(slices.Clone(rs.active), func(r *rule) bool { return r == rs.all[id-1] })
	return len(rs.active) < before
}

func (c *Carrier) adminFaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, c.rules.current(c.now()))
}

func (c *Carrier) adminInject(w http.ResponseWriter, r *http.Request) {
	body, refused := adminBody(w, r, maxBody)
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	faults, err := decodeList[Fault](body)
	if err != nil {
		writeRefusal(w, refuse(http.StatusBadRequest, "bad_fault", "Bad fault", "%s", strings.TrimPrefix(err.Error(), "mockcarrier: ")))
		return
	}
	for _, f := range faults {
		c.Inject(f)
	}
	writeJSON(w, http.StatusCreated, c.rules.current(c.now()))
}

func (c *Carrier) adminEndFault(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil || !c.rules.end(id) {
		writeRefusal(w, refuse(http.StatusNotFound, "unknown_fault", "Unknown fault", "No rule %s is in force.", r.PathValue("id")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
