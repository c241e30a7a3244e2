// Quickstart buys a file of orders at a carrier that fails all the time, and
// proves that each was bought exactly once.
//
// It starts the program mockcarrier (-mock), or uses one that is running
// already (-url), and is a client in a process of its own:
//
//	make demo
//	go run ./examples/quickstart -url http://127.0.0.1:52188/v1
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/carrier-sdk/carrier-go/carrier"
	"github.com/carrier-sdk/carrier-go/mockcarrier"
)

//go:embed orders.json
var defaultOrders []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stdout)
	program := flags.String("mock", "", "start this mockcarrier `program` on a free port")
	url := flags.String("url", "", "use the mockcarrier at this base `URL`, with its path, instead of starting one")
	key := flags.String("key", mockcarrier.APIKey, "the API `key`")
	file := flags.String("orders", "", "read the orders from this `file`; default: orders.json beside the source")
	out := flags.String("out", ".", "save the label in this `directory`")
	limit := flags.Duration("attempt-timeout", 400*time.Millisecond, "the time limit of one attempt")
	if err := flags.Parse(args); err != nil {
		return err
	}

	orders, err := readOrders(*file)
	if err != nil {
		return err
	}
	if *program != "" {
		mock, err := startMock(ctx, *program, stdout)
		if err != nil {
			return err
		}
		defer mock.stop()
		*url = mock.url
	}
	if *url == "" {
		return errors.New("give -mock PROGRAM or -url URL; see -help")
	}
	admin := admin{base: origin(*url)}

	client, err := carrier.New(*url, forBadWeather(*key, *limit)...)
	if err != nil {
		return err
	}
	defer client.Close()

	fmt.Fprintf(stdout, "\nBuying %d shipments while the carrier answers 503, loses answers and stalls.\n", len(orders))
	if err := admin.breakThings(ctx); err != nil {
		return err
	}
	bought, err := buyAll(ctx, client, orders, stdout)
	if err != nil {
		return err
	}
	if err := admin.repair(ctx); err != nil {
		return err
	}
	printTable(stdout, orders, bought)

	if err := follow(ctx, client, admin, bought[0].TrackingNumber, stdout); err != nil {
		return err
	}
	if err := saveLabel(ctx, client, bought[0], *out, stdout); err != nil {
		return err
	}
	return compare(ctx, admin, orders, bought, stdout)
}

// forBadWeather are the options for a carrier as bad as this one. The defaults
// are for a carrier that works most of the time: a budget of 10 tokens would
// end the retries after five failures in a row, and five failures in a row
// would open the breaker, both rightly. Here most attempts fail by design.
func forBadWeather(key string, attempt time.Duration) []carrier.Option {
	return []carrier.Option{
		carrier.WithAPIKey(key),
		carrier.WithAttemptTimeout(attempt),
		carrier.WithTimeout(10 * time.Second),
		carrier.WithRetry(carrier.RetryPolicy{MaxAttempts: 4}),
		carrier.WithRetryBudget(carrier.BudgetPolicy{Tokens: 200}),
		carrier.WithBreaker(carrier.BreakerPolicy{ConsecutiveFailures: -1, FailureRatio: 0.95, MinimumCalls: 50}),
	}
}

func readOrders(file string) ([]carrier.ShipmentRequest, error) {
	data := defaultOrders
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	var orders []carrier.ShipmentRequest
	if err := json.Unmarshal(data, &orders); err != nil {
		return nil, fmt.Errorf("orders: %w", err)
	}
	if len(orders) == 0 {
		return nil, errors.New("orders: there are none")
	}
	return orders, nil
}
