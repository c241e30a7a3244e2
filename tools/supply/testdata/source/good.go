package good // want: nothing

type thing struct{}

// A method of that name is not run by anybody.
func (thing) init() {}
