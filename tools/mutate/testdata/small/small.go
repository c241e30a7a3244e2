// Package small has a mutant of each kind, and of each end.
package small

const most = 10 - 1 // a constant is no place for a mutant

func clamp(x int) int {
	if x > most {
		return most
	}
	return x
}

func sum(xs []int) (n int) {
	for _, x := range xs {
		if x < 0 {
			continue
		}
		n += x
	}
	return n
}

func count(n int) (even int) {
	for i := 0; i < n; i++ {
		if !odd(i) && i >= 0 {
			even++
		}
	}
	return even
}

func odd(i int) bool { return i%2 != 0 }

func any3(a, b, c bool) bool { return a || b || c }

func forgotten(a, b float64) float64 { return -a * b }
