package carrier_test

import (
	"crypto/sha256"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// A file of 64 MiB goes up through the pipeline at flat memory, over a 503:
// the second attempt reads it again, from the start.
func TestUploadAtFlatMemory(t *testing.T) {
	const size = 64 << 20
	name := filepath.Join(t.TempDir(), "scans.bin")
	want := writeFile(t, name, size)

	var requests atomic.Int32
	got := make(chan []byte, 4)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.CopyBuffer(struct{ io.Writer }{h}, r.Body, make([]byte, 32<<10))
		if err != nil || n != size {
			t.Errorf("%d bytes: %v", n, err)
		}
		got <- h.Sum(nil)
		if requests.Add(1) == 1 {
			w.WriteHeader(503)
		}
	}))
	t.Cleanup(srv.Close)

	client := newClient(t, srv.URL)
	var look func()
	open := func() (io.ReadCloser, error) {
		f, err := os.Open(name)
		return &lookingFile{File: f, look: func() { look() }}, err
	}
	f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+"/scans/1", f)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength, req.GetBody = size, open
	peak := heapGrowth(t, func(lookNow func()) {
		look = lookNow
		resp, err := client.Doer().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
	if peak > 1<<20 {
		t.Errorf("%d KiB of heap", peak>>10)
	}
	for range 2 {
		if string(<-got) != string(want) {
			t.Error("other bytes arrived")
		}
	}
}

// lookingFile looks at the heap after every 16 MiB that were read.
type lookingFile struct {
	*os.File
	look func()
	read int
}

func (f *lookingFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if f.read/(16<<20) != (f.read+n)/(16<<20) {
		f.look()
	}
	f.read += n
	return n, err
}

// WriteTo is hidden, so that every byte passes Read.
func (f *lookingFile) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{f})
}

func writeFile(t *testing.T, name string, size int) []byte {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	var h hash.Hash = sha256.New()
	chunk := make([]byte, 1<<20)
	for i := range size / len(chunk) {
		chunk[0], chunk[len(chunk)-1] = byte(i), byte(i>>3)
		if _, err := io.MultiWriter(f, h).Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return h.Sum(nil)
}
