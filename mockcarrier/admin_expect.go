package mockcarrier

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// expectationOrder is an expectation as the admin API takes it. One of Times,
// AtLeast and AtMost says how many requests must come; one, if none does.
type expectationOrder struct {
	Operation string    `json:"operation"`
	With      []Matcher `json:"with"`
	Times     *int      `json:"times"`
	AtLeast   *int      `json:"atLeast"`
	AtMost    *int      `json:"atMost"`
}

func (o expectationOrder) check() error {
	if err := checkOperation(o.Operation); err != nil {
		return err
	}
	said := 0
	for _, n := range []*int{o.Times, o.AtLeast, o.AtMost} {
		if n == nil {
			continue
		}
		if said++; *n < 0 {
			return fmt.Errorf("%d requests are too few", *n)
		}
	}
	if said > 1 {
		return fmt.Errorf("times, atLeast and atMost contradict one another")
	}
	for _, m := range o.With {
		if err := m.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (o expectationOrder) place(c *Carrier) *Expectation {
	e := c.Expect(o.Operation).With(o.With...)
	switch {
	case o.Times != nil:
		return e.Times(*o.Times)
	case o.AtLeast != nil:
		return e.AtLeast(*o.AtLeast)
	case o.AtMost != nil:
		return e.AtMost(*o.AtMost)
	}
	return e
}

func (c *Carrier) adminExpectations(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, notNil(c.Expectations()))
}

func (c *Carrier) adminExpect(w http.ResponseWriter, r *http.Request) {
	body, refused := adminBody(w, r, maxBody)
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	orders, err := decodeList[expectationOrder](body)
	for _, order := range orders {
		if err == nil {
			err = order.check()
		}
	}
	if err != nil {
		writeRefusal(w, refuse(http.StatusBadRequest, "bad_expectation", "Bad expectation", "%s", strings.TrimPrefix(err.Error(), "mockcarrier: ")))
		return
	}
	var made []*Expectation
	for _, order := range orders {
		made = append(made, order.place(c))
	}
	if r.URL.Query().Get("order") == "strict" {
		InOrder(made...)
	}
	writeJSON(w, http.StatusCreated, c.Expectations())
}

func (c *Carrier) adminVerify(w http.ResponseWriter, _ *http.Request) {
	report := c.report()
	writeJSON(w, http.StatusOK, map[string]any{"ok": report == "", "report": report})
}

func (c *Carrier) adminExplain(w http.ResponseWriter, r *http.Request) {
	body, refused := adminBody(w, r, maxBody)
	if refused != nil {
		writeRefusal(w, refused)
		return
	}
	var asked struct {
		Method string      `json:"method"`
		Path   string      `json:"path"`
		Header http.Header `json:"header"`
		Body   string      `json:"body"`
	}
	err := decodeStrictly(body, &asked)
	var request *http.Request
	if err == nil {
		request, err = http.NewRequest(asked.Method, asked.Path, io.NopCloser(bytes.NewReader([]byte(asked.Body))))
	}
	if err != nil {
		writeRefusal(w, refuse(http.StatusBadRequest, "bad_request", "Bad request", "%s.", err))
		return
	}
	for name, values := range asked.Header {
		for _, value := range values {
			request.Header.Add(name, value)
		}
	}
	explanation, err := c.Explain(request)
	if err != nil {
		panic(err) // its body is in memory
	}
	writeJSON(w, http.StatusOK, struct {
		Explanation
		Text string `json:"text"`
	}{explanation, explanation.String()})
}
