// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadInput(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, in, want string
		most           int64
		err            string
	}{
		{name, "of no use", "12345", 5, ""},
		{name, "of no use", "", 4, "reading the nodes: " + name + " has more than 4 bytes"},
		{"-", "123", "123", 3, ""},
		{"-", "1234", "", 3, "reading the nodes: standard input has more than 3 bytes"},
		{"-", strings.Repeat("x", 1<<10+1), "", 1 << 10, "reading the nodes: standard input has more than 1 KiB"},
		{"-", strings.Repeat("x", 2<<20+1), "", 2 << 20, "reading the nodes: standard input has more than 2 MiB"},
	} {
		got, err := ReadInput(strings.NewReader(test.in), test.name, "the nodes", test.most)
		if string(got) != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("%s, at most %d: %q, %v; want %q, %s", test.name, test.most, got, err, test.want, test.err)
		}
	}
	if _, err := ReadInput(nil, name+"x", "the nodes", 9); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "reading the nodes: open ") {
		t.Errorf("a file that is not there: %v", err)
	}
	broken := errors.New("broken")
	if _, err := ReadInput(iotest.ErrReader(broken), "-", "the nodes", 9); !errors.Is(err, broken) || err.Error() != "reading the nodes: broken" {
		t.Errorf("a broken pipe: %v", err)
	}
}
