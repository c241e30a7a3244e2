package supply

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the repository.
const root = "../.."

// tracked returns the files that git knows or would add, below root.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	files := slices.DeleteFunc(strings.Split(string(out), "\x00"), func(f string) bool {
		_, err := os.Stat(filepath.Join(root, f))
		return f == "" || err != nil
	})
	if len(files) == 0 {
		t.Fatalf("no files like %s", patterns)
	}
	return files
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// refuses proves a check: each file of testdata names in its first line, behind
// "want:", what has to be found in it; "nothing" is for a good one. The findings
// are compared as a whole.
func refuses(t *testing.T, pattern string, check func(t *testing.T, path string) []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	bad := 0
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			first, _, _ := strings.Cut(string(read(t, path)), "\n")
			_, want, found := strings.Cut(first, "want: ")
			if !found {
				t.Fatalf("%s does not say what it wants", path)
			}
			if want != "nothing" {
				bad++
			}
			if got := strings.Join(check(t, path), "; "); got != strings.TrimSuffix(want, "nothing") {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
	if bad == 0 {
		t.Error("nothing bad in testdata")
	}
}

func report(t *testing.T, path string, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Errorf("%s: %s", path, f)
	}
}
