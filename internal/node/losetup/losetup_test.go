// SPDX-License-Identifier: Apache-2.0

package losetup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseRequest(t *testing.T) {
	for line, c := range map[string]struct {
		files int
		want  Request
		why   string
	}{
		`{"op":"attach"}`:                          {1, Request{Op: Attach}, ""},
		`{"op":"attach","readOnly":true}`:          {1, Request{Op: Attach, ReadOnly: true}, ""},
		`{"op":"detach","number":7}`:               {0, Request{Op: Detach, Number: 7}, ""},
		`{"op":"resize","number":7}`:               {0, Request{Op: Resize, Number: 7}, ""},
		`{"op":"detach"}`:                          {0, Request{Op: Detach}, ""},
		`{"op":"list"}`:                            {0, Request{Op: List}, ""},
		`{"op":"attach" }`:                         {0, Request{}, "0 open files"},
		`{"op":"attach"  }`:                        {2, Request{}, "2 open files"},
		`{"op":"list" }`:                           {1, Request{}, "1 open files"},
		`{"op":"attach","number":1}`:               {1, Request{}, "not understood"},
		`{"op":"list","readOnly":true}`:            {0, Request{}, "not understood"},
		`{"op":"detach","number":-1}`:              {0, Request{}, "not understood"},
		`{"op":"detach","number":1048576}`:         {0, Request{}, "not understood"},
		`{"op":"detach","readOnly":true}`:          {0, Request{}, "not understood"},
		`{"op":"grow"}`:                            {0, Request{}, "not understood"},
		`{"op":"list","path":"/etc"}`:              {0, Request{}, "unknown field"},
		`{"op":"list"}{"op":"list"}`:               {0, Request{}, "one JSON object"},
		`{"op":"list"`:                             {0, Request{}, "not understood"},
		``:                                         {0, Request{}, "not understood"},
		`{"op":"list"` + strings.Repeat(" ", 1100): {0, Request{}, "more than 1024 bytes"},
		`{"op":"mount"}`:                           {1, Request{}, "not understood"},
		`{"op":"mount","fileSystem":{"type":"ext4"},"number":1}`:      {1, Request{}, "not understood"},
		`{"op":"mount","fileSystem":{"type":"ext4"},"readOnly":true}`: {1, Request{}, "not understood"},
		`{"op":"mount","fileSystem":{"type":"ext4"}}`:                 {0, Request{}, "0 open files"},
		`{"op":"mount","fileSystem":{"type":"ext4","at":"/etc"}}`:     {1, Request{}, "unknown field"},
		`{"op":"attach","fileSystem":{"type":"ext4"}}`:                {1, Request{}, "not understood"},
		`{"op":"detach","fileSystem":{"type":"ext4"}}`:                {0, Request{}, "not understood"},
		`{"op":"list","fileSystem":{"type":"ext4"}}`:                  {0, Request{}, "not understood"},
	} {
		got, err := ParseRequest([]byte(line), c.files)
		if got != c.want || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %+v, %v; want %+v, %q", line, got, err, c.want, c.why)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"op":"attach","readOnly":true}`), 1)
	f.Add([]byte(`{"op":"detach","number":7}`), 0)
	f.Fuzz(func(t *testing.T, line []byte, files int) {
		r, err := ParseRequest(line, files)
		if err != nil {
			if r != (Request{}) {
				t.Errorf("%+v of what is not understood", r)
			}
			return
		}
		if (files == 1) != (r.Op == Attach || r.Op == Mount) || r.Number < 0 || r.Number > maxNumber {
			t.Errorf("%+v with %d files", r, files)
		}
	})
}

func TestParseOptions(t *testing.T) {
	for line, why := range map[string]string{
		"-f file": "", "-f --show file": "", "--find --show --read-only file": "", "-fr file": "", "-d /dev/loop3 /dev/loop4": "", "-D": "", "-a": "", "": "", "-l -n -O NAME,RO": "",
		"-j file": "", "-n -O name -j file": "", "/dev/loop1": "", "-O +MAJ:MIN": "",
		"-f": "before it is attached", "-f a b": "one file at a time", "-d": "which device", "-f -d /dev/loop1": "only one of", "-f -o 512 file": "copy that part", "-P -f file": "each partition",
		"-c /dev/loop0 /dev/loop1": "which device", "/dev/loop1 file": "the host chooses", "-r": "for attaching", "--show": "for attaching", "-a file": "unexpected", "-O WRONG": "no column",
		"--wrong": "unknown flag", "-J": "without headings", "-h": "help",
	} {
		_, err := parse(strings.Fields(line))
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("losetup %s: %v, want %q", line, err, why)
		}
	}
}

func TestNumber(t *testing.T) {
	for device, want := range map[string]int{"/dev/loop0": 0, "loop12": 12, "/dev/loop1048575": 1048575} {
		if got, err := number(device); got != want || err != nil {
			t.Errorf("%s: %d, %v", device, got, err)
		}
	}
	for _, device := range []string{"/dev/loop", "/dev/loop01", "/dev/loop-1", "/dev/loop1048576", "/dev/sda", "/tmp/loop1", "/dev/loop1p1", "/dev/../loop1", ""} {
		if got, err := number(device); err == nil {
			t.Errorf("%s: %d", device, got)
		}
	}
}

// asked is a host that remembers.
type asked struct {
	requests []Request
	opened   []string
	flags    []int
	devices  []Device
	failure  error
}

func (a *asked) ask(_ context.Context, r Request, file *os.File) ([]Device, error) {
	a.requests = append(a.requests, r)
	if file != nil {
		flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
		if err != nil {
			return nil, err
		}
		a.opened, a.flags = append(a.opened, file.Name()), append(a.flags, flags&unix.O_ACCMODE)
	}
	return a.devices, a.failure
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "disk")
	if err := os.WriteFile(name, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	var is unix.Stat_t
	if err := unix.Stat(name, &is); err != nil {
		t.Fatal(err)
	}
	backing := filepath.Join(dir, "loop3", "loop", "backing_file")
	if err := errors.Join(os.MkdirAll(filepath.Dir(backing), 0o700), os.WriteFile(backing, []byte(name+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	three, four := Device{Number: 3, FileSystem: is.Dev, Inode: is.Ino, ReadOnly: true}, Device{Number: 4, FileSystem: 2049, Inode: 12}
	for name, c := range map[string]struct {
		line    string
		devices []Device
		asks    []Request
		out     string
		why     string
	}{
		"attach":             {"-f " + name, []Device{three}, []Request{{Op: Attach}}, "", ""},
		"attach and show":    {"-f --show " + name, []Device{three}, []Request{{Op: Attach}}, "/dev/loop3\n", ""},
		"attach to read":     {"-r -f " + name, []Device{three}, []Request{{Op: Attach, ReadOnly: true}}, "", ""},
		"attach nothing":     {"-f " + name + "-not", nil, nil, "", "no such file"},
		"detach":             {"-d /dev/loop3 loop4", nil, []Request{{Op: Detach, Number: 3}, {Op: Detach, Number: 4}}, "", ""},
		"detach what is not": {"-d /dev/sda loop4", nil, []Request{{Op: Detach, Number: 4}}, "", "not the path of a loop device"},
		"resize":             {"-c /dev/loop3", nil, []Request{{Op: Resize, Number: 3}}, "", ""},
		"resize nothing":     {"-c", nil, nil, "", "which device?"},
		"detach all":         {"-D", []Device{three, four}, []Request{{Op: List}, {Op: Detach, Number: 3}, {Op: Detach, Number: 4}}, "", ""},
		"all":                {"-a", []Device{four}, []Request{{Op: List}}, "/dev/loop4: [2049]:12 ()\n", ""},
		"of a file":          {"-n -O NAME -j " + name, []Device{three, four}, []Request{{Op: List}}, "/dev/loop3\n", ""},
		"of another file":    {"-j " + dir, []Device{three, four}, []Request{{Op: List}}, "", ""},
		"a table":            {"-O NAME,RO,MAJ:MIN", []Device{three}, []Request{{Op: List}}, "NAME       RO MAJ:MIN\n/dev/loop3 1  7:3\n", ""},
		"an empty table":     {"", nil, []Request{{Op: List}}, "", ""},
		"one":                {"/dev/loop4", []Device{three, four}, []Request{{Op: List}}, "/dev/loop4: [2049]:12 ()\n", ""},
		"one that is not":    {"/dev/loop5", []Device{three}, []Request{{Op: List}}, "", "no such loop device"},
		"help":               {"--help", nil, nil, Usage, ""},
	} {
		host, out := &asked{devices: c.devices}, &bytes.Buffer{}
		err := Command{Ask: host.ask, Sys: dir, Out: out}.Run(t.Context(), strings.Fields(c.line))
		if !slices.Equal(host.requests, c.asks) || out.String() != c.out || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: asked %+v, printed %q, %v", name, host.requests, out, err)
		}
	}
}

// A whole conversation by a real socket: the file arrives open, with the rights that it was opened with.
func TestAsk(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	answers := []string{`{"devices":[{"number":3}]}`, `{"error":"no"}`, ``, strings.Repeat("x", maxAnswer+1)}
	got := make(chan string, len(answers))
	go func() {
		for _, answer := range answers {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			line, rights := make([]byte, 512), make([]byte, 64)
			n, oobn, _, _, _ := connection.(*net.UnixConn).ReadMsgUnix(line, rights)
			got <- string(line[:n]) + strings.Repeat("+", oobn/unix.CmsgSpace(4))
			_, _ = connection.Write([]byte(answer))
			_ = connection.Close()
		}
	}()
	devices, err := Ask(t.Context(), socket, Request{Op: Attach}, os.Stdin)
	if len(devices) != 1 || devices[0].Number != 3 || err != nil {
		t.Errorf("%+v, %v", devices, err)
	}
	want, err := json.Marshal(Request{Op: Attach})
	if line := <-got; err != nil || line != string(want)+"\n+" {
		t.Errorf("it hears %q", line)
	}
	for _, why := range []string{"no", "before it answered", "more than it should"} {
		if _, err := Ask(t.Context(), socket, Request{Op: List}, nil); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
}
