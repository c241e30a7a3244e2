package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
)

// peakMemory is the most memory that the process has held, in bytes: the
// kernel's figure on Linux, elsewhere what the runtime has asked for.
func peakMemory() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		var kib int64
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
