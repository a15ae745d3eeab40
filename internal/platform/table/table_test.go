// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/table"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tab := table.New(&out, "NAME", "STATUS", "AGE")
	tab.Row("default", "", "5s")
	tab.Row("größer-als-die-andern", "Ready", "1m")
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	tab.Row("x", "two\nlines\x1b[31m\b\x7f\u009b\u202e\xff", "2m") // comes later: same columns
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `NAME                    STATUS   AGE
default                 <none>   5s
größer-als-die-andern   Ready    1m
x                       two\nlines\x1b[31m\b\x7f\u009b\u202e�   2m
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Fatalf("table (-want +got):\n%s", diff)
	}
}

// Wide letters take two columns of a terminal, and marks none.
func TestWideLetters(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tab := table.New(&out, "NAME", "AGE")
	tab.Row("節点", "5s")
	tab.Row("e\u0301t\u0301e\u0301", "6s")
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "NAME   AGE\n節点   5s\ne\u0301t\u0301e\u0301    6s\n"; out.String() != want {
		t.Fatalf("printed %q, want %q", out.String(), want)
	}
}

// A column of numbers needs no heading; <none> is for what is missing.
func TestColumnWithoutHeading(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tab := table.New(&out, "", "SOURCE")
	tab.Row("1", "")
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "    SOURCE\n1   <none>\n"; out.String() != want {
		t.Fatalf("printed %q, want %q", out.String(), want)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTableSaysThatItCouldNotWrite(t *testing.T) {
	t.Parallel()
	tab := table.New(full{})
	tab.Row("x")
	if err := tab.Flush(); err == nil {
		t.Fatal("no error")
	}
}
