// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lines are files that others wrote, mostly where ranges are chosen.
func lines(t *rapid.T, label string) string {
	number := rapid.OneOf(
		rapid.Uint32Range(lowest-1<<17, limit+1<<17),
		rapid.Map(rapid.Uint32Range(0, 40), func(n uint32) uint32 { return lowest + n<<16 }),
		rapid.Uint32(),
	)
	line := rapid.Custom(func(t *rapid.T) string {
		first, count := number.Draw(t, "first"), rapid.OneOf(rapid.Uint32Range(0, 3<<16), rapid.Uint32Range(0, limit-lowest)).Draw(t, "count")
		format := rapid.SampledFrom([]string{"b:%d:%d\n", "c:%d:%d\n", "1000:%#x:0%o\n", " d : %d : %d \r\n", "#e:%d:%d\n", "f:%d:%d:\n", "%d:%d\n", "\n", "g:x%d:%d\n"}).Draw(t, "format")
		if strings.Count(format, "%") == 0 {
			return format
		}
		return fmt.Sprintf(format, first, count)
	})
	return strings.Join(rapid.SliceOfN(line, 0, 12).Draw(t, label), "")
}

// lineWith returns a line with an id of a range, or "". It reads lines by itself, the way fmt wrote them.
func lineWith(r Range, content string) string {
	for line := range strings.Lines(content) {
		var first, count uint64
		fields := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), " ", ""), ":")
		if len(fields) != 3 {
			continue
		}
		if _, err := fmt.Sscanf(fields[1]+" "+fields[2], "%v %v", &first, &count); err != nil {
			continue
		}
		last := min(first+count-1, math.MaxUint32)
		if count > 0 && first <= uint64(r.First)+uint64(r.Count)-1 && uint64(r.First) <= last {
			return line
		}
	}
	return ""
}

// Whatever the files hold: a range overlaps nothing, is aligned and inside the bounds, is the same when asked again,
// and no lower one would do. Others' lines stay, and are all that is left after the release.
func TestProperties(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		uid, gid := lines(t, "subuid"), lines(t, "subgid")
		id := rapid.Uint32Range(lowest, lowest+1<<20).Draw(t, "user")
		passwd := fmt.Sprintf("u:x:%d:1::/:\n", id)
		count := rapid.OneOf(rapid.Uint32Range(1, 5<<16), rapid.Uint32Range(1, limit-lowest)).Draw(t, "count")
		for name, content := range map[string]string{"subuid": uid, "subgid": gid, "passwd": passwd} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		h, err := read(dir)
		if err != nil {
			t.Fatal(err)
		}
		r, there, err := h.plan(me, count)
		if err != nil {
			if !strings.Contains(err.Error(), "consecutive subordinate ids are free") {
				t.Fatal(err)
			}
			return
		}
		if there || r.Count != count || r.First%alignment != 0 || r.First < lowest || r.end() > limit {
			t.Fatalf("%v, %v", r, there)
		}
		all := uid + gid + fmt.Sprintf("u:%d:1\n", id)
		if line := lineWith(r, all); line != "" {
			t.Fatalf("%v overlaps %q", r, line)
		}
		for lower := uint32(lowest); lower < min(r.First, lowest+64*alignment); lower += alignment {
			if lineWith(Range{First: lower, Count: count}, all) == "" {
				t.Fatalf("%v, though %d is free", r, lower)
			}
		}
		h.uid.content, h.gid.content = h.uid.with(me, &r), h.gid.with(me, &r)
		if again, there, err := h.plan(me, count); err != nil || !there || again != r {
			t.Fatalf("again: %v, %v, %v; want %v", again, there, err, r)
		}
		if h.uid.with(me, nil) != uid || h.gid.with(me, nil) != gid {
			t.Fatalf("%q and %q became %q and %q", uid, gid, h.uid.with(me, nil), h.gid.with(me, nil))
		}
	})
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"", "a:1:2\n", "a:1:2", "a:0x10:010\n# b\n\n", me + at, me + ":x\n", me, " " + me + at, "a:1:2:3\r\n\x00:\xff:1\n",
		"a:4294967295:1\na:4294967296:1\na:18446744073709551615:18446744073709551615\na:18446744073709551616:1\n", "a:-1:+1\n", "a:0x:08\n", ":1:1\n", "a:5:0\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		this := file{path: "subuid", content: content}
		for _, other := range this.others(me) {
			if other.first >= other.end || other.end > idSpace {
				t.Errorf("ids from %d before %d", other.first, other.end)
			}
		}
		without := this.with(me, nil)
		r := Range{First: lowest, Count: 65536}
		with := file{content: this.with(me, &r)}
		if got, err := with.of(me); err != nil || got == nil || *got != r {
			t.Errorf("%q has %v, %v", with.content, got, err)
		}
		// Nothing but lines of the owner goes, nothing but one comes, and a newline before it.
		if got := with.with(me, nil); got != without && got != without+"\n" {
			t.Errorf("%q became %q", without, got)
		}
		if len(with.others(me)) != len(this.others(me)) {
			t.Errorf("%q reserves %v, not %v", with.content, with.others(me), this.others(me))
		}
		found, err := this.of(me)
		if (err == nil && found == nil) != (without == content) {
			t.Errorf("%q has %v, %v, and is %q without", content, found, err, without)
		}
	})
}
