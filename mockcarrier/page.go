package mockcarrier

import (
	"embed"
	"net/http"
)

//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page load what is embedded with it, talk to its own
// origin, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// handlePage serves the page for people, which uses the admin API.
func handlePage(mux *http.ServeMux) {
	for path, file := range map[string]struct{ name, mediaType string }{
		"{$}":      {"index.html", "text/html; charset=utf-8"},
		"page.css": {"page.css", "text/css; charset=utf-8"},
		"page.js":  {"page.js", "text/javascript; charset=utf-8"},
		"icon.svg": {"icon.svg", "image/svg+xml"},
	} {
		content, err := pageFiles.ReadFile("page/" + file.name)
		if err != nil {
			panic(err) // it is embedded
		}
		header := http.Header{"Content-Type": {file.mediaType}, "Content-Security-Policy": {pagePolicy}}
		mux.HandleFunc("GET "+AdminPath+path, func(w http.ResponseWriter, _ *http.Request) {
			copyAnswer(w, answer{Status: http.StatusOK, Header: header, Body: content})
		})
	}
	mux.Handle("GET /__mock", http.RedirectHandler(AdminPath, http.StatusTemporaryRedirect))
}
