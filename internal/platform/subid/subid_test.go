// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	me = "muster-1a2b3c4d"
	// at is what a first reservation of 65536 ids gives.
	at = ":2013265920:65536\n"
	// next is what the second gives.
	next = ":2013331456:65536\n"
)

// etcOf makes a directory with the given files. An empty one is missing.
func etcOf(t *testing.T, files map[string]string) string {
	t.Helper()
	etc := t.TempDir()
	for name, content := range files {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(etc, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return etc
}

// holds fails unless a file has that content, or is missing if that is "".
func holds(t *testing.T, etc, name, content string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(etc, name))
	if err != nil && (content != "" || !errors.Is(err, fs.ErrNotExist)) {
		t.Error(err)
	}
	if string(raw) != content {
		t.Errorf("%s is %q, want %q", name, raw, content)
	}
}

// tidy fails if anything but the files and the first lock is left.
func tidy(t *testing.T, etc string) {
	t.Helper()
	entries, err := os.ReadDir(etc)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "subuid", "subgid", "passwd", "group", ".pwd.lock":
		default:
			t.Errorf("%s is left", entry.Name())
		}
	}
}

func TestReserve(t *testing.T) {
	const passwd = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/bash\n"
	for name, c := range map[string]struct {
		uid, gid, passwd, group string
		count                   uint32 // 0 is 65536
		first                   uint32 // of the range; 0 is the lowest
		wantUID, wantGID        string // "" is unchanged
		err                     string // "" is none
	}{
		"nothing is there":         {wantUID: me + at, wantGID: me + at},
		"others are kept":          {uid: "alice:100000:65536\n# a comment\n\nbroken\n\xff\x00:x\r\n", passwd: passwd, wantUID: "alice:100000:65536\n# a comment\n\nbroken\n\xff\x00:x\r\n" + me + at, wantGID: me + at},
		"no last newline":          {gid: "alice:100000:65536", wantUID: me + at, wantGID: "alice:100000:65536\n" + me + at},
		"idempotent":               {uid: me + at + "b:1:1\n", gid: "a:1:1\n" + me + at},
		"larger than asked":        {uid: me + ":2013265920:131072\n", gid: me + ":2013265920:131072\n"},
		"twice the same":           {uid: me + at + me + at, gid: me + at},
		"a prefix of another name": {uid: me + "0" + at, gid: me + "-a" + at, first: 2013331456, wantUID: me + "0" + at + me + next, wantGID: me + "-a" + at + me + next},

		// Ranges of others are not free.
		"taken in subuid":        {uid: "b" + at, first: 2013331456, wantUID: "b" + at + me + next, wantGID: me + next},
		"taken in subgid":        {gid: "b" + at, first: 2013331456, wantUID: me + next, wantGID: "b" + at + me + next},
		"a user":                 {passwd: "u:x:2013265920:1::/:\n", first: 2013331456, wantUID: me + next, wantGID: me + next},
		"a user's first group":   {passwd: "u:x:1:2013331455::/:\n", first: 2013331456, wantUID: me + next, wantGID: me + next},
		"a group":                {group: "g:x:2013265930:\n", first: 2013331456, wantUID: me + next, wantGID: me + next},
		"just below and above":   {uid: "b:2013265919:1\nc:2013331456:1\n", wantUID: "b:2013265919:1\nc:2013331456:1\n" + me + at, wantGID: me + at},
		"the last of the range":  {uid: "b:2013331455:1\n", first: 2013331456, wantUID: "b:2013331455:1\n" + me + next, wantGID: me + next},
		"a gap is too small":     {uid: "b:2013331456:1\n", count: 65537, first: 2013396992, wantUID: "b:2013331456:1\n" + me + ":2013396992:65537\n", wantGID: me + ":2013396992:65537\n"},
		"a gap":                  {uid: "c:2013331456:65536\nb:2013200384:65536\n", wantUID: "c:2013331456:65536\nb:2013200384:65536\n" + me + at, wantGID: me + at},
		"one inside another":     {uid: "b:2013265920:655360\nc:2013265920:1\n", first: 2013921280, wantUID: "b:2013265920:655360\nc:2013265920:1\n" + me + ":2013921280:65536\n", wantGID: me + ":2013921280:65536\n"},
		"hexadecimal and octal":  {uid: "b:0x78000000:0200000\n", first: 2013331456, wantUID: "b:0x78000000:0200000\n" + me + next, wantGID: me + next},
		"spaces and a comment":   {uid: "# b : +2013265920 : 1 \r\n", first: 2013331456, wantUID: "# b : +2013265920 : 1 \r\n" + me + next, wantGID: me + next},
		"an empty range":         {uid: "b:2013265921:0\n", wantUID: "b:2013265921:0\n" + me + at, wantGID: me + at},
		"malformed is not taken": {uid: "b:2013265920:1:1\n:2013265920:1\nb:2013265920:x\nb:2013265920:-1\n", wantUID: "b:2013265920:1:1\n:2013265920:1\nb:2013265920:x\nb:2013265920:-1\n" + me + at, wantGID: me + at},
		"all there is":           {count: limit - lowest, wantUID: me + ":2013265920:134086656\n", wantGID: me + ":2013265920:134086656\n"},
		"the other defaults":     {uid: "u:100000:65536\nroot:1000000:1000000000\ncontainers:2147483647:2147483648\n", wantUID: "u:100000:65536\nroot:1000000:1000000000\ncontainers:2147483647:2147483648\n" + me + at, wantGID: me + at},

		// A process was killed between the two files.
		"half made, in subuid":       {uid: me + next, first: 2013331456, wantUID: me + next, wantGID: me + next},
		"half made, in subgid":       {gid: me + next, first: 2013331456, wantUID: me + next, wantGID: me + next},
		"half made, taken in subgid": {uid: "a:1:1\n" + me + at + "c:1:1\n", gid: "b" + at, first: 2013331456, wantUID: "a:1:1\nc:1:1\n" + me + next, wantGID: "b" + at + me + next},
		"half made, taken in subuid": {uid: "b" + at, gid: me + at, first: 2013331456, wantUID: "b" + at + me + next, wantGID: me + next},
		"half made, a user's":        {uid: me + at, passwd: "u:x:2013265920:1::/:\n", first: 2013331456, wantUID: me + next, wantGID: me + next},
		"half made, too small":       {uid: me + ":2013265920:1\n", wantUID: me + at, wantGID: me + at},
		"half made, not aligned":     {gid: me + ":2013265921:65536\n", wantUID: me + at, wantGID: me + at},

		// Lines of people count, wherever they are.
		"by hand":                 {uid: me + ":65536:65536\n", gid: me + ":65536:65536\n", first: 65536},
		"by hand, the root's":     {uid: me + ":0:65536\n", gid: me + ":0:65536\n", err: "begins at 0, not at a multiple of 65536 above 0"},
		"by hand, not aligned":    {uid: me + ":100000:65536\n", gid: me + ":100000:65536\n", err: "begins at 100000"},
		"by hand, too high":       {uid: me + ":2147418112:65537\n", gid: me + ":2147418112:65537\n", err: "ends at 2147483648, not below 2147483648"},
		"by hand, the highest":    {uid: me + ":2147418112:65536\n", gid: me + ":2147418112:65536\n", first: 2147418112},
		"by hand, another's":      {uid: me + at + "bob:2013331455:1\n", gid: me + at, err: `line muster-1a2b3c4d:2013265920:65536, which overlaps "bob:2013331455:1" in`},
		"by hand, a user's":       {uid: me + at, gid: me + at, passwd: "bob:x:2013265921:1::/:\n", err: `overlaps id 2013265921 of "bob" in`},
		"too small":               {uid: me + ":2013265920:1\n", gid: me + ":2013265920:1\n", err: "has 1 ids, not 65536"},
		"different":               {uid: me + at, gid: me + next, err: "has the line muster-1a2b3c4d:2013265920:65536 and"},
		"two in one file":         {uid: me + at + me + next, gid: me + at, err: "must be one"},
		"malformed":               {uid: me + ":x:1\n", err: `malformed line "muster-1a2b3c4d:x:1": must be muster-1a2b3c4d:FIRST:COUNT`},
		"malformed in subgid":     {uid: me + at, gid: me + "\n", err: `subgid: malformed line "muster-1a2b3c4d"`},
		"hexadecimal, by hand":    {uid: me + ":0x78000000:65536\n", err: "malformed line"},
		"indented, by hand":       {gid: " " + me + at, err: "malformed line"},
		"four fields, by hand":    {uid: me + ":2013265920:65536:1\n", err: "malformed line"},
		"a sign, by hand":         {uid: me + ":+2013265920:65536\n", err: "malformed line"},
		"a zero, by hand":         {gid: me + ":02013265920:65536\n", err: "malformed line"},
		"CRLF, by hand":           {gid: me + ":2013265920:65536\r\n", err: "malformed line"},
		"a user of that name":     {passwd: me + ":x:1:1::/:\n", err: `has a user "muster-1a2b3c4d"`},
		"nothing is left":         {uid: "b:2000000000:147352576\n", err: "no 65536 consecutive subordinate ids are free from 2013265920 to 2147352575"},
		"beyond the last id":      {uid: "b:2000000000:4294967295\n", err: "no 65536 consecutive subordinate ids are free"},
		"the last id is a user's": {count: limit - lowest, passwd: "u:x:2147352575:1::/:\n", err: "no 134086656 consecutive subordinate ids are free"},
		"more than there is":      {count: limit - lowest + 1, err: "no 134086657 consecutive subordinate ids are free"},
		"more than ever":          {count: 1<<32 - 1, err: "no 4294967295 consecutive subordinate ids are free"},
		"a file is too large":     {gid: strings.Repeat("#", maxSize+1), err: "subgid is too large: must be at most 1048576 bytes"},
		"no room for a line":      {gid: strings.Repeat("#", maxSize), err: "subgid is too large for one more line"},
	} {
		t.Run(name, func(t *testing.T) {
			etc := etcOf(t, map[string]string{"subuid": c.uid, "subgid": c.gid, "passwd": c.passwd, "group": c.group})
			count := c.count
			if count == 0 {
				count = 65536
			}
			r, err := Reserve(etc, me, count)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, %v; want %q", r, err, c.err)
				}
				holds(t, etc, "subuid", c.uid)
				holds(t, etc, "subgid", c.gid)
				tidy(t, etc)
				return
			}
			first := c.first
			if first == 0 {
				first = lowest
			}
			if err != nil || r.First != first || r.Count < count {
				t.Errorf("got %v, %v; want %d ids from %d", r, err, count, first)
			}
			wantUID, wantGID := c.wantUID, c.wantGID
			if wantUID == "" {
				wantUID, wantGID = c.uid, c.gid
			}
			holds(t, etc, "subuid", wantUID)
			holds(t, etc, "subgid", wantGID)
			holds(t, etc, "passwd", c.passwd)
			holds(t, etc, "group", c.group)
			if again, err := Reserve(etc, me, count); err != nil || again != r {
				t.Errorf("again: %v, %v; want %v", again, err, r)
			}
			if found, ok, err := Find(etc, me); err != nil || !ok || found != r {
				t.Errorf("found %v, %v, %v; want %v", found, ok, err, r)
			}
			tidy(t, etc)
		})
	}
}

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		uid, gid string
		found    bool
		err      string
	}{
		"none":         {uid: "b" + at},
		"both":         {uid: me + at, gid: me + at, found: true},
		"subuid alone": {uid: me + at},
		"subgid alone": {gid: me + at},
		"different":    {uid: me + at, gid: me + next, err: "they must be the same"},
		"malformed":    {uid: me + at, gid: me + at + me + ":", err: "malformed line"},
	} {
		t.Run(name, func(t *testing.T) {
			etc := etcOf(t, map[string]string{"subuid": c.uid, "subgid": c.gid})
			r, found, err := Find(etc, me)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, %v, %v; want %q", r, found, err, c.err)
				}
				return
			}
			if err != nil || found != c.found || found && r != (Range{First: lowest, Count: 65536}) || !found && r != (Range{}) {
				t.Errorf("got %v, %v, %v; want %v", r, found, err, c.found)
			}
			if _, err := os.Lstat(filepath.Join(etc, ".pwd.lock")); err == nil {
				t.Error("the lock was taken")
			}
		})
	}
}

func TestRelease(t *testing.T) {
	const others = "b:100000:65536\n#x\nbroken\n"
	for name, c := range map[string]struct {
		uid, gid, wantUID, wantGID string
		err                        string
	}{
		"none":         {uid: others, wantUID: others},
		"both":         {uid: "b:100000:65536\n" + me + at + "#x\nbroken\n", gid: me + at + others, wantUID: others, wantGID: others},
		"subuid alone": {uid: others + me + at, wantUID: others},
		"subgid alone": {gid: others + me + at, wantGID: others},
		"different":    {uid: me + at + others, gid: me + next + others, wantUID: others, wantGID: others},
		"several":      {uid: me + at + others + me + next, wantUID: others},
		"no newline":   {uid: "b:1:1\n" + me + ":65536:1", wantUID: "b:1:1\n"},
		"malformed":    {uid: others + me + at, gid: me + ":1\n", wantUID: others + me + at, wantGID: me + ":1\n", err: "malformed line"},
	} {
		t.Run(name, func(t *testing.T) {
			etc := etcOf(t, map[string]string{"subuid": c.uid, "subgid": c.gid})
			for range 2 {
				if err := Release(etc, me); err == nil != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				holds(t, etc, "subuid", c.wantUID)
				holds(t, etc, "subgid", c.wantGID)
				tidy(t, etc)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		me: true, "a": true, "_a.B-9": true, strings.Repeat("a", 32): true,
		"": false, strings.Repeat("a", 33): false, "1000": false, "1a": false, "-a": false, "+a": false, "#a": false,
		"a b": false, "a:b": false, "a\n": false, "a\x00": false, "é": false,
	} {
		etc := t.TempDir()
		_, reserveErr := Reserve(etc, name, 1)
		_, _, findErr := Find(etc, name)
		for what, err := range map[string]error{"Reserve": reserveErr, "Find": findErr, "Release": Release(etc, name)} {
			if err == nil != ok {
				t.Errorf("%s of %q: %v", what, name, err)
			}
			if err != nil && !strings.Contains(err.Error(), "invalid owner "+strconv.Quote(name)) {
				t.Error(err)
			}
		}
	}
	if _, err := Reserve(t.TempDir(), me, 0); err == nil || !strings.Contains(err.Error(), "invalid count 0") {
		t.Error(err)
	}
}

// Modes and owners stay; a new file has those of shadow-utils.
func TestModeAndOwner(t *testing.T) {
	etc := etcOf(t, map[string]string{"subuid": "b:1:1\n"})
	uid := filepath.Join(etc, "subuid")
	owner := os.Geteuid()
	if owner == 0 {
		owner = 65534
	}
	if err := errors.Join(os.Chmod(uid, 0o600), os.Chown(uid, owner, os.Getegid())); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	check := func(name string, mode fs.FileMode, owner int) {
		t.Helper()
		info, err := os.Lstat(filepath.Join(etc, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := int(info.Sys().(*syscall.Stat_t).Uid); info.Mode() != mode || got != owner {
			t.Errorf("%s has mode %v and owner %d; want %v, %d", name, info.Mode(), got, mode, owner)
		}
	}
	if _, err := Reserve(etc, me, 1); err != nil {
		t.Fatal(err)
	}
	check("subuid", 0o600, owner)
	check("subgid", 0o644, os.Geteuid())
	check(".pwd.lock", 0o600, os.Geteuid())
	if err := Release(etc, me); err != nil {
		t.Fatal(err)
	}
	check("subuid", 0o600, owner)
	check("subgid", 0o644, os.Geteuid())
}

// A link is followed to read and never replaced. The error says what to add instead.
func TestLinks(t *testing.T) {
	for name, target := range map[string]string{"to a file": "static", "to nothing": "nothing"} {
		t.Run(name, func(t *testing.T) {
			etc := etcOf(t, map[string]string{"subuid": "b:1:1\n", "static": "c:1:1\n"})
			if err := os.Symlink(target, filepath.Join(etc, "subgid")); err != nil {
				t.Fatal(err)
			}
			_, err := Reserve(etc, me, 65536)
			want := filepath.Join(etc, "subgid") + " is a symbolic link to " + target + ": muster does not replace symbolic links: " +
				"as root, or in the configuration that these files are made from, add muster-1a2b3c4d:2013265920:65536 in "
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v, want %s", err, want)
			}
			holds(t, etc, "subuid", "b:1:1\n")
			holds(t, etc, "static", "c:1:1\n")
			for _, name := range []string{"subuid", "subgid"} { // as the error says, through the link
				if err := os.WriteFile(filepath.Join(etc, name), []byte(me+at), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if r, err := Reserve(etc, me, 65536); err != nil || r.First != lowest {
				t.Errorf("got %v, %v", r, err)
			}
			if err := Release(etc, me); err == nil || !strings.Contains(err.Error(), "remove every line that begins with muster-1a2b3c4d: in "+etc) {
				t.Error(err)
			}
			holds(t, etc, "subuid", me+at)
		})
	}
}

func TestNotAFile(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		etc := t.TempDir()
		if err := create(filepath.Join(etc, "passwd")); err != nil {
			t.Fatal(err)
		}
		if _, err := Reserve(etc, me, 1); err == nil || !strings.Contains(err.Error(), "passwd is not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Reserve(filepath.Join(t.TempDir(), "missing"), me, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

// A temporary file that a crash left is replaced, not followed.
func TestLeftTemporaryFile(t *testing.T) {
	etc := etcOf(t, map[string]string{"passwd": "root:x:0:0::/:\n"})
	if err := os.Symlink("passwd", filepath.Join(etc, ".new-subuid")); err != nil {
		t.Fatal(err)
	}
	if _, err := Reserve(etc, me, 65536); err != nil {
		t.Fatal(err)
	}
	holds(t, etc, "subuid", me+at)
	holds(t, etc, "passwd", "root:x:0:0::/:\n")
	tidy(t, etc)
}

// A label as SELinux gives it, on a host that may not have SELinux: the attribute is kept by any file system.
func TestLabel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("this test labels files: run it as root")
	}
	etc := etcOf(t, map[string]string{"subuid": "b:1:1\n"})
	path := filepath.Join(etc, "subuid")
	const want = "system_u:object_r:passwd_file_t:s0"
	if err := unix.Lsetxattr(path, label, []byte(want), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Reserve(etc, me, 1); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 256)
	n, err := unix.Lgetxattr(path, label, got)
	if err != nil || string(got[:n]) != want {
		t.Errorf("the label is %q, %v; want %q", got[:max(n, 0)], err, want)
	}
}

// When one file was written and the other was not, whichever it is, the next call goes on from there. A directory where
// the temporary file would be stands for the crash.
func TestOneFileWritten(t *testing.T) {
	for name, c := range map[string]struct{ uid, gid string }{
		"nothing":                    {},
		"half made, in subuid":       {uid: me + at},
		"half made, in subgid":       {gid: me + at},
		"half made, taken in subgid": {uid: me + at, gid: "b" + at},
		"half made, taken in subuid": {uid: "b" + at, gid: me + at},
		"both":                       {uid: me + at, gid: me + at},
	} {
		for _, blocked := range []string{".new-subuid", ".new-subgid"} {
			t.Run(name+blocked, func(t *testing.T) {
				for what, first := range map[string]func(etc string) error{
					"Reserve": func(etc string) error { _, err := Reserve(etc, me, 65536); return err },
					"Release": func(etc string) error { return Release(etc, me) },
				} {
					etc := etcOf(t, map[string]string{"subuid": c.uid, "subgid": c.gid})
					in := filepath.Join(etc, blocked, "x")
					if err := os.MkdirAll(in, 0o700); err != nil {
						t.Fatal(err)
					}
					if err := first(etc); err != nil && !strings.Contains(err.Error(), blocked+": directory not empty") {
						t.Errorf("%s: %v", what, err)
					}
					if err := os.RemoveAll(filepath.Join(etc, blocked)); err != nil {
						t.Fatal(err)
					}
					r, err := Reserve(etc, me, 65536)
					found, ok, findErr := Find(etc, me)
					if err != nil || findErr != nil || !ok || found != r {
						t.Errorf("after %s: %v, %v, found %v, %v, %v", what, r, err, found, ok, findErr)
					}
					if err := Release(etc, me); err != nil {
						t.Error(err)
					}
					tidy(t, etc)
				}
			})
		}
	}
}
