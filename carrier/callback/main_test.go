package callback_test

import (
	"os"
	"testing"

	"github.com/carrier-sdk/carrier-go/internal/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }
