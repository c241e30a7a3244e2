package bad // want: imports "unsafe"

import "unsafe"

var size = unsafe.Sizeof(0)
