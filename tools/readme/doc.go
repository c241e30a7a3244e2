// Package readme has no code, only tests: what the READMEs say is true. Their
// commands run as printed, in a fresh clone, or in the module of someone who
// requires the SDK; their Go compiles; their links, tests, options and errors
// are there.
//
// What `make ci` runs anyhow is not run again: it is looked up in the Makefile.
// Commands that cost much are left to `make readme-test`.
package readme
