// SPDX-License-Identifier: Apache-2.0

package nodeshell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/logs"
)

const (
	logDir = "/var/log"
	// JournalID is the number of the group that may read the logs of programs, as on Amazon Linux.
	JournalID = 190
	// JournalGroup is the name of that group.
	JournalGroup = "systemd-journal"
	// atItsEnd is how many lines journalctl -e shows.
	atItsEnd = 1000
)

// journalOptions are what a command line of journalctl(1) asks for.
type journalOptions struct {
	unit   string
	lines  int
	follow bool
	bare   bool // -o cat: the lines alone
}

// journalUsage says what there is of journalctl(1).
const journalUsage = "journalctl -u UNIT [-n LINES] [-f] [-o short|cat]"

// flags of journalctl(1) that change nothing here: there is one boot, no pager, and nothing to explain.
const (
	journalIdle      = "abelqx"
	journalIdleWords = " --no-pager --quiet --boot --catalog --all --full --no-hostname "
)

func parseJournal(args []string) (o journalOptions, err error) {
	o.lines = logs.All
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		word, value, has := strings.Cut(arg, "=")
		switch {
		case strings.Contains(journalIdleWords, " "+word+" "):
		case word == "--follow":
			o.follow = true
		case word == "--pager-end":
			o.lines = atItsEnd
		case word == "--unit" || word == "--lines" || word == "--output":
			if !has {
				if value, args, err = next(word, args); err != nil {
					return o, err
				}
			}
			err = o.set(word[2:3], value)
		case len(arg) > 1 && arg[0] == '-' && arg[1] != '-':
			args, err = o.short(arg[1:], args)
		default:
			err = fmt.Errorf("%.64q cannot be had: %s", arg, journalUsage)
		}
		if err != nil {
			return o, err
		}
	}
	if o.unit == "" {
		return o, fmt.Errorf("a unit is missing: %s", journalUsage)
	}
	return o, nil
}

func next(option string, args []string) (value string, rest []string, err error) {
	if len(args) == 0 {
		return "", nil, fmt.Errorf("%s needs a value: %s", option, journalUsage)
	}
	return args[0], args[1:], nil
}

// short reads letters that go together, such as -xeu kubelet.
func (o *journalOptions) short(letters string, args []string) (rest []string, err error) {
	for i, letter := range letters {
		switch {
		case letter == 'f':
			o.follow = true
		case letter == 'e':
			o.lines = atItsEnd
		case strings.ContainsRune(journalIdle, letter):
		case strings.ContainsRune("uno", letter):
			value := letters[i+1:]
			if value == "" {
				if value, args, err = next("-"+string(letter), args); err != nil {
					return nil, err
				}
			}
			return args, o.set(map[rune]string{'u': "u", 'n': "l", 'o': "o"}[letter], value)
		default:
			return nil, fmt.Errorf("-%c cannot be had: %s", letter, journalUsage)
		}
	}
	return args, nil
}

// set takes the value of an option, which goes by the first letter of its long name.
func (o *journalOptions) set(option, value string) (err error) {
	switch option {
	case "u":
		if o.unit != "" {
			return fmt.Errorf("one unit at a time: %s", journalUsage)
		}
		o.unit, err = unitOf(value)
	case "l":
		if value == "all" {
			o.lines = logs.All
			return nil
		}
		if o.lines, err = strconv.Atoi(value); err != nil || o.lines < 0 {
			return fmt.Errorf("invalid number of lines %.32q: %s", value, journalUsage)
		}
	default:
		if value != "short" && value != "cat" {
			return fmt.Errorf("invalid output %.32q: %s", value, journalUsage)
		}
		o.bare = value == "cat"
	}
	return err
}

// RunJournalctl carries out a command line of journalctl(1).
func (s System) RunJournalctl(ctx context.Context, args []string, host string) error {
	o, err := parseJournal(args)
	if err != nil {
		return err
	}
	path := filepath.Join(s.Root, logDir, o.unit+".log")
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the log of %s may be read by root and the group %s: sudo journalctl -u %s", o.unit, JournalGroup, o.unit)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s has no log: it has not run on this machine", o.unit)
	case err != nil:
		return fmt.Errorf("opening the log of %s: %w", o.unit, err)
	}
	written, err := file.Stat()
	_ = file.Close()
	if err != nil {
		return fmt.Errorf("looking at the log of %s: %w", o.unit, err)
	}
	out := io.Writer(&journal{out: s.Out, unit: o.unit, host: host, at: written.ModTime(), now: time.Now})
	if o.bare {
		out = s.Out
	}
	err = logs.Copy(ctx, out, logs.Config{Sources: []logs.Source{{Path: path, Older: []string{path + ".1"}, Location: time.UTC}}, Tail: o.lines, Follow: o.follow})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("showing the log of %s: %w", o.unit, err)
	}
	return nil
}

// journal writes lines as the journal shows them: time, host, program and process before each.
type journal struct {
	out        io.Writer
	unit, host string
	at         time.Time // of the last line that has a time
	now        func() time.Time
	rest       []byte
}

func (j *journal) Write(text []byte) (int, error) {
	j.rest = append(j.rest, text...)
	var lines bytes.Buffer
	for {
		line, rest, whole := bytes.Cut(j.rest, []byte("\n"))
		if !whole {
			break
		}
		lines.Write(j.line(line))
		j.rest = rest
	}
	if _, err := j.out.Write(lines.Bytes()); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (j *journal) line(text []byte) []byte {
	if at, ok := logs.Stamp(text, j.now().UTC()); ok {
		j.at = at
	}
	identifier := j.unit
	if pid := klogPID(text); pid != "" {
		identifier += "[" + pid + "]"
	}
	return fmt.Appendf(nil, "%s %s %s: %s\n", j.at.UTC().Format("Jan 02 15:04:05"), j.host, identifier, text)
}

// klogPID is the number of the process in the header of a line of klog (I0919 09:47:00.509710    3347 csr.go:262]); empty in other lines.
func klogPID(line []byte) string {
	fields := bytes.Fields(line[:min(len(line), 80)])
	if len(fields) < 4 || len(fields[0]) != 5 || !bytes.ContainsAny(fields[0][:1], "IWEF") || !bytes.HasSuffix(fields[3], []byte("]")) {
		return ""
	}
	if _, err := strconv.ParseUint(string(fields[2]), 10, 32); err != nil {
		return ""
	}
	return string(fields[2])
}
