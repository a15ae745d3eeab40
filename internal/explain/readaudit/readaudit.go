// SPDX-License-Identifier: Apache-2.0

// Package readaudit records who read what of an installation by something that reads much at once or for others: bundles, the MCP
// server, the console and the API explain.muster.dev. The record is the log file reads.log among the logs of the account, which muster logs reads shows: a line of
// JSON for each read, written before anything is read.
//
// Requests to API servers are in their audit logs besides.
//
// What happens if
//
//	the line cannot be written   Add fails, and its caller reads nothing
//	the file is full             at 4 MiB the older part goes to reads.log.1, and the part before that goes
//	a request is very long       2 KiB of it are written, and how much it is longer
//	two programs write at once   they take turns by a lock of the file; no line is torn
//
// It trusts the process's own ids. The login is the kernel's (loginuid), which stays the same through su and sudo. The
// name of a client of the MCP server or the console is the client's own word.
package readaudit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/statedir"
)

// LogName is the name by which muster logs shows the record.
const LogName = "reads"

// mostBytes is how large the file may be before its content becomes the older part.
const mostBytes = 4 << 20

// mostCommand and mostUser are how much of a command and of a user's name is written, in bytes: requests as long as servers take them would push
// the earlier reads out of the record by the dozen.
const mostCommand, mostUser = 2 << 10, 512

// noLogin is the loginuid of a process that no login is behind (audit(7)).
const noLogin = "4294967295"

// Reader is who reads.
type Reader struct {
	UID int `json:"uid"`
	// User is the name of UID; empty if it has none.
	User string `json:"user,omitempty"`
	// Login is the name or the number of the user who logged in; empty if the kernel knows no login.
	Login string `json:"login,omitempty"`
	PID   int    `json:"pid"`
}

// Self is the process that calls it.
func Self() Reader {
	r := Reader{UID: os.Getuid(), PID: os.Getpid()}
	if u, err := user.LookupId(strconv.Itoa(r.UID)); err == nil {
		r.User = u.Username
	}
	raw, err := os.ReadFile("/proc/self/loginuid")
	login := strings.TrimSpace(string(raw))
	if err != nil || login == noLogin || login == "" {
		return r
	}
	r.Login = login
	if u, err := user.LookupId(login); err == nil {
		r.Login = u.Username
	}
	return r
}

// Read is one line of the record.
type Read struct {
	Time time.Time `json:"time"`
	By   Reader    `json:"by"`
	// With is the command that reads, such as muster mcp.
	With string `json:"with"`
	// As is the ARN of the IAM identity whose rights the read has; empty for those of By.
	As string `json:"as,omitempty"`
	// Client is what the client of that command says of itself; empty if it has no client.
	Client string `json:"client,omitempty"`
	// Command is the command line of Muster's whose answer is read, or the request that is answered.
	Command string `json:"command"`
	// Cluster is that whose API server asks, by the namespace that it has in the management plane, and User the user of the
	// cluster for whom it does; empty for all else.
	Cluster string `json:"cluster,omitempty"`
	User    string `json:"user,omitempty"`
	// File that is written; empty if none is.
	File string `json:"file,omitempty"`
}

// Record is the record of a state directory.
type Record struct {
	path string
}

// Of returns the record of a state directory.
func Of(dir statedir.Dir) Record { return Record{path: dir.Log(LogName)} }

// Add writes a line.
func (r Record) Add(read Read) error {
	read.Command, read.Client, read.User = bounded(read.Command, mostCommand), bounded(read.Client, mostUser), bounded(read.User, mostUser)
	line, err := json.Marshal(read)
	if err == nil {
		err = r.add(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("nothing is read, since the record of reads cannot be written: %w", err)
	}
	return nil
}

// bounded is the beginning of a text, with how much it lacks.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… and %d bytes more", strings.ToValidUTF8(text[:most], ""), len(text)-most)
}

func (r Record) add(line []byte) error {
	if err := os.Mkdir(filepath.Dir(r.path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for {
		file, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		again, err := r.addTo(file, line)
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err != nil || !again {
			return err
		}
	}
}

// addTo writes a line to the file. It reports whether the file has become the older part.
func (r Record) addTo(file *os.File, line []byte) (again bool, err error) {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return false, fmt.Errorf("locking %s: %w", r.path, err)
	}
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(info, now):
		return true, nil // it was moved while we waited for the lock
	case err != nil:
		return false, err
	case info.Size() > 0 && info.Size()+int64(len(line)) > mostBytes:
		return true, os.Rename(r.path, r.path+".1")
	}
	_, err = file.Write(line)
	return false, err
}
