// SPDX-License-Identifier: Apache-2.0

package promise

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	top    = "# Promises\n\nWords.\n\n| id | promise | figure | measured by |\n|---|---|---|---|\n"
	closed = "| <a id=\"port-closed\"></a>`port-closed` | a port is closed | 1 second | `TestPromises/ports` |\n"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := Parse(top + closed + strings.NewReplacer("port-closed", "leader-fenced", "1 second", "11 seconds").Replace(closed) + "\nMore words.\n")
	want := Figures{
		{Promise{"port-closed"}, "a port is closed", "1 second", time.Second, "TestPromises/ports"},
		{Promise{"leader-fenced"}, "a port is closed", "11 seconds", 11 * time.Second, "TestPromises/ports"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Promise{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if row, err := got.Of(LeaderFenced); err != nil || row.Within != 11*time.Second {
		t.Errorf("%+v, %v", row, err)
	}
	if row, err := got.Of(PortOpened); err == nil {
		t.Errorf("a row that is not there: %+v", row)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ page, says string }{
		"no table":                 {"# Promises\n", "no table"},
		"another header":           {strings.Replace(top, "figure", "limit", 1) + closed, "no table"},
		"no rows":                  {top + "\n", "no rows"},
		"an id that is twice":      {top + closed + closed, `line 8: the id "port-closed" is there twice`},
		"a cell too few":           {top + "| `port-closed` | a port is closed | 1 second |\n", "line 7: invalid row"},
		"a row that does not end":  {top + strings.TrimSuffix(closed, " |\n") + "\n", "line 7: invalid row"},
		"text below the table":     {top + closed + "More words.\n", "line 8: invalid row"},
		"no anchor":                {top + strings.Replace(closed, `<a id="port-closed"></a>`, "", 1), "line 7: invalid id"},
		"another anchor":           {top + strings.Replace(closed, `"port-closed"`, `"port-opened"`, 1), "line 7: invalid id"},
		"no words":                 {top + strings.Replace(closed, "a port is closed", " ", 1), "has no words"},
		"a figure of another unit": {top + strings.Replace(closed, "1 second", "1 hour", 1), `invalid figure "1 hour"`},
		"no story":                 {top + strings.Replace(closed, "`TestPromises/ports`", "-", 1), `invalid story "-"`},
	} {
		if got, err := Parse(c.page); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want %q", name, got, err, c.says)
		}
	}
}

func TestParseFigure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"1 second": time.Second, "11 seconds": 11 * time.Second, "1 minute": time.Minute, "5 minutes": 5 * time.Minute} {
		if got, err := ParseFigure(text); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "second", "a second", "1 seconds", "2 second", "0 seconds", "-1 seconds", "01 second", "1.5 seconds", "1 s", "1 second ", "11  seconds"} {
		if got, err := ParseFigure(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}
