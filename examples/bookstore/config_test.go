package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	env := map[string]string{"BOOKSTORE_TRACK_TIMEOUT": "7s", "BOOKSTORE_ATTEMPTS": "4", "CARRIER_URL": "https://api.carrier.example/v1"}
	c, err := parse([]string{"-attempts", "5"}, func(name string) string { return env[name] + environment(name) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.trackTimeout != 7*time.Second || c.attempts != 5 || c.carrierURL != env["CARRIER_URL"] || c.buyTimeout != 20*time.Second {
		t.Errorf("got %+v", c)
	}
}

func TestConfigThatIsRefused(t *testing.T) {
	secret := "a-secret-of-the-shop"
	file := filepath.Join(t.TempDir(), "orders.json")
	if err := os.WriteFile(file, []byte(`{"orders":[{"id":"a","revision":1},{"id":"a","revision":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		says string
	}{
		"no tokens":          {env: map[string]string{"BOOKSTORE_TOKENS": " "}, says: "BOOKSTORE_TOKENS"},
		"a token alone":      {env: map[string]string{"BOOKSTORE_TOKENS": secret}, says: "name:role:token"},
		"no name":            {env: map[string]string{"BOOKSTORE_TOKENS": ":staff:" + secret}, says: "name:role:token"},
		"a strange role":     {env: map[string]string{"BOOKSTORE_TOKENS": "ada:" + secret + ":" + secret}, says: "role"},
		"a short token":      {env: map[string]string{"BOOKSTORE_TOKENS": "ada:staff:" + secret[:15]}, says: "shorter than 16"},
		"a token for two":    {env: map[string]string{"BOOKSTORE_TOKENS": "ada:staff:" + secret + ",bob:customer:" + secret}, says: "entry 2"},
		"no key":             {env: map[string]string{"CARRIER_API_KEY": "-"}, says: "CARRIER_API_KEY"},
		"odd variable":       {env: map[string]string{"BOOKSTORE_DRAIN": "soon"}, says: "BOOKSTORE_DRAIN"},
		"odd flag":           {args: []string{"-nonsense"}, says: "nonsense"},
		"odd argument":       {args: []string{"nonsense"}, says: "nonsense"},
		"negative drain":     {args: []string{"-drain", "-1s"}, says: "-drain"},
		"no time":            {args: []string{"-track-attempt", "0"}, says: "time limits"},
		"no time to buy":     {args: []string{"-buy-timeout", "5s"}, says: "-buy-timeout"},
		"no attempt":         {args: []string{"-attempts", "0"}, says: "-attempts"},
		"no budget":          {args: []string{"-retry-tokens", "0"}, says: "-retry-tokens"},
		"a ratio over 1":     {args: []string{"-breaker-ratio", "1.5"}, says: "FailureRatio"},
		"odd URL":            {args: []string{"-carrier-url", "ftp://carrier.example"}, says: "invalid"},
		"address taken":      {args: []string{"-addr", "256.0.0.1:1"}, says: "256.0.0.1"},
		"no orders":          {args: []string{"-orders", file + "x"}, says: "orders.jsonx"},
		"one order twice":    {args: []string{"-orders", file}, says: `"a"`},
		"orders are no JSON": {args: []string{"-orders", "main.go"}, says: "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			getenv := func(name string) string {
				if v := tc.env[name]; v != "" {
					return strings.Trim(v, " -")
				}
				return environment(name)
			}
			logs := new(logLines)
			args := append([]string{"-addr", "127.0.0.1:0"}, tc.args...)
			if got := run(context.Background(), args, getenv, logs); got == 0 {
				t.Error("it ran")
			}
			said := logs.buf.String()
			if !strings.Contains(said, tc.says) || strings.Contains(said, secret[:15]) {
				t.Errorf("it said %s", said)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	logs := new(logLines)
	if got := run(context.Background(), []string{"-help"}, environment, logs); got != 0 {
		t.Errorf("exit status %d", got)
	}
	if said := logs.buf.String(); !strings.HasPrefix(said, usage) || !strings.Contains(said, "-carrier-url URL") {
		t.Errorf("it said %s", said)
	}
	if _, err := parse([]string{"-h"}, environment, new(logLines)); err != flag.ErrHelp {
		t.Error(err)
	}
}
