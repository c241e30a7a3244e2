package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the folder of the repository.
const root = "../.."

// document is a file of Markdown, taken apart.
type document struct {
	file   string // below root
	blocks []block
	prose  []line // what is outside of blocks
}

type line struct {
	number int
	text   string
}

// block is a fenced or an indented one.
type block struct {
	file     string
	line     int    // of its first line
	language string // behind the fence, "indented" for the other kind
	before   string // the last line of prose in front of it
	lines    []string
}

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// documents returns those that git knows or would add, all of them or the READMEs.
func documents(t *testing.T, all bool) []document {
	t.Helper()
	var docs []document
	for _, file := range tracked(t, "*.md") {
		if name := filepath.Base(file); all || name == "README.md" || name == "CONTRIBUTING.md" {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, takeApart(file, string(text)))
		}
	}
	return docs
}

// tracked returns the files that git knows or would add.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	var files []string
	for _, f := range strings.Split(string(out), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, f)); f != "" && err == nil && info.Mode().IsRegular() {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no files like %s", patterns)
	}
	return files
}

func takeApart(file, text string) document {
	d := document{file: file}
	var open *block
	before, blank := "", true
	for i, text := range strings.Split(text, "\n") {
		indented := strings.HasPrefix(text, "    ")
		switch language, fence := strings.CutPrefix(text, "```"); {
		case fence && open != nil && open.language != "indented":
			d.blocks = append(d.blocks, *open)
			open = nil
		case open != nil && open.language != "indented":
			open.lines = append(open.lines, text)
		case fence:
			open = &block{file: file, line: i + 2, language: language, before: before}
		case open != nil && indented:
			open.lines = append(open.lines, text[4:])
		case indented && blank:
			open = &block{file: file, line: i + 1, language: "indented", before: before, lines: []string{text[4:]}}
		default:
			if open != nil {
				d.blocks = append(d.blocks, *open)
				open = nil
			}
			d.prose = append(d.prose, line{i + 1, text})
			if text != "" {
				before = text
			}
		}
		blank = text == ""
	}
	return d
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// spans returns the pieces of code in prose.
func (d document) spans() []line {
	var all []line
	for _, l := range d.prose {
		for _, m := range codeSpan.FindAllStringSubmatch(l.text, -1) {
			all = append(all, line{l.number, m[1]})
		}
	}
	return all
}

func TestTakeApart(t *testing.T) {
	d := takeApart("a.md", "# A\n\nRun `make x`:\n\n    make a\n    make b\n\nor\n\n```sh\nmake c\n```\nand `make d`.\n- item\n    more\n\n```\nout\n```\n")
	var got []string
	for _, b := range d.blocks {
		got = append(got, b.language+": "+strings.Join(b.lines, ", ")+" after "+b.before)
	}
	for _, s := range d.spans() {
		got = append(got, s.text)
	}
	want := "indented: make a, make b after Run `make x`:; sh: make c after or; : out after     more; make x; make d"
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}
