package resilience

import (
	"fmt"
	"iter"
)

// DefaultMaxPages is how many pages [Pages] takes at most by default.
const DefaultMaxPages = 10_000

// Pages goes through a list page by page: fetch is given "" for the first one,
// and then what it returned as next, a cursor or a link, until that is "". It
// ends with the first error; with a [LimitError] after max pages (0 means
// [DefaultMaxPages], negative means no limit); and with [ErrMalformedResponse]
// if a page names itself as the next.
func Pages[P any](max int, fetch func(cursor string) (page P, next string, err error)) iter.Seq2[P, error] {
	max = orDefault(max, DefaultMaxPages, -1)
	return func(yield func(P, error) bool) {
		var none P
		cursor := ""
		for n := 0; ; n++ {
			if n == max {
				yield(none, &LimitError{"pages", int64(max)})
				return
			}
			page, next, err := fetch(cursor)
			if err != nil {
				yield(none, err)
				return
			}
			if next != "" && next == cursor {
				yield(none, fmt.Errorf("%w: a page names itself as the next", ErrMalformedResponse))
				return
			}
			if !yield(page, nil) || next == "" {
				return
			}
			cursor = next
		}
	}
}
