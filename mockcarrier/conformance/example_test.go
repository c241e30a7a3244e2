package conformance_test

import (
	"fmt"
	"os"

	"github.com/carrier-sdk/carrier-go/mockcarrier/conformance"
)

// Two clients side by side.
func ExampleCheck() {
	ours := conformance.Check(func(baseURL string) conformance.Client { return newSDK(baseURL) }, "security")
	ours.Name = "carrier-go"
	plain := conformance.Check(newPlain, "security")
	plain.Name = "net/http"
	_ = conformance.WriteTable(os.Stdout, ours, plain)
	fmt.Println(ours.Passed(), plain.Passed())
	// Output:
	// group     carrier-go  net/http
	// security  9/9         2/9
	// all       9/9         2/9
	// true false
}
