package main

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
)

// carrierFailed is what staff are told of a call that failed: what it means for
// them, and when to come back. Addresses, answers and causes are for the log.
func carrierFailed(err error) *problem {
	switch {
	case errors.Is(err, carrier.ErrCircuitOpen):
		p := newProblem(http.StatusServiceUnavailable, "carrier_paused",
			"The carrier has failed too often, and is left alone for a while.")
		var e *carrier.Error
		if errors.As(err, &e) {
			p.header("Retry-After", seconds(e.RetryAfter))
		}
		return p
	case errors.Is(err, carrier.ErrTimeout):
		return newProblem(http.StatusGatewayTimeout, "carrier_timeout", "The carrier did not answer in time.")
	default:
		return newProblem(http.StatusBadGateway, "carrier_failed", "The carrier gave no usable answer.")
	}
}

// seconds is d for a Retry-After: whole seconds, never too soon.
func seconds(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}
