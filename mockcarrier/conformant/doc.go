// Package conformant has the tests that hold the mock carrier to the API's
// description: each answer of each operation in each state is one that the
// description has, status, headers and body, and each request that breaks it is
// refused, with problem details that point at the member.
//
// It is a module of its own, so that the validator is no dependency of the SDK.
// Run it with "go test ./..." in this folder.
package conformant
