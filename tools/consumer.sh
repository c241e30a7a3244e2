#!/bin/sh
# A module that requires nothing but the SDK: how many modules are in its graph?
set -eu
limit=30
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<EOF
module example.com/consumer

go 1.26.0

require github.com/carrier-sdk/carrier-go v0.0.0

replace github.com/carrier-sdk/carrier-go => $root
EOF
cat > main.go <<'EOF'
package main

import "github.com/carrier-sdk/carrier-go/carrier"

func main() { _, _ = carrier.New("https://api.carrier.example/v1") }
EOF
go mod tidy >/dev/null 2>&1
go build -o consumer .
n=$(go list -m all | wc -l)
echo "consumer: $n modules in the graph, $limit allowed"
[ "$n" -le "$limit" ]
