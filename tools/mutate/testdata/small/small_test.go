package small

import "testing"

func TestClamp(t *testing.T) {
	if clamp(8) != 8 || clamp(9) != 9 || clamp(20) != 9 {
		t.Error("clamp")
	}
}

func TestSum(t *testing.T) {
	if sum([]int{1, -1, 2}) != 3 {
		t.Error("sum")
	}
}

func TestAny3(t *testing.T) {
	if any3(false, false, false) || !any3(true, true, false) || !any3(false, false, true) {
		t.Error("any3")
	}
}

func TestCount(t *testing.T) {
	if count(4) != 2 || count(5) != 3 {
		t.Error("count")
	}
}
