package bad // want: imports "unsafe"; has a go:linkname

import _ "unsafe"

//go:linkname nanotime runtime.nanotime
func nanotime() int64
