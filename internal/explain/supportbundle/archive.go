// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/explain/redaction"
)

// mostBytes is how much an archive holds before it is compressed. A later file does not fit.
const mostBytes = 48 << 20

// mostName is how long the name of a file in an archive may be, in bytes.
const mostName = 512

// contentsName is the file that lists the others.
const contentsName = "contents.json"

// File is a file of an archive.
type File struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	// SHA256 of the content, in hexadecimal.
	SHA256 string `json:"sha256"`
	// Redacted counts what was taken out of the file, by kind.
	Redacted redaction.Count `json:"redacted,omitempty"`

	data []byte
}

// LeftOut is what is not in an archive, and why.
type LeftOut struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// contents is what contents.json says.
type contents struct {
	Made    time.Time `json:"made"`
	Files   []File    `json:"files"`
	LeftOut []LeftOut `json:"leftOut"`
}

// Archive is a set of files. All that is added to it is redacted.
type Archive struct {
	now     time.Time
	files   []File
	leftOut []LeftOut
	room    int // bytes that there is still room for
}

// New returns an archive without files.
func New(now time.Time) *Archive { return &Archive{now: now.UTC(), room: mostBytes} }

// Files returns the files with their contents by name, as Save writes them.
func (a *Archive) Files() (map[string][]byte, error) {
	files, err := a.all()
	if err != nil {
		return nil, err
	}
	byName := map[string][]byte{}
	for _, f := range files {
		byName[f.Name] = f.data
	}
	return byName, nil
}

// LeaveOut notes what is not in the archive.
func (a *Archive) LeaveOut(what, why string) {
	what, _ = redaction.Text(what)
	why, _ = redaction.Text(why)
	a.leftOut = append(a.leftOut, LeftOut{What: what, Why: why})
}

// AddJSON adds a value as a file of JSON.
func (a *Archive) AddJSON(name string, value any) {
	data, count, err := redaction.JSON(value)
	if err != nil {
		a.LeaveOut(name, err.Error())
		return
	}
	a.add(name, data, count)
}

// AddText adds a text.
func (a *Archive) AddText(name, text string) {
	text, count := redaction.Text(text)
	a.add(name, []byte(text), count)
}

// plain is the name of a file that means the same wherever the archive is unpacked.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

func (a *Archive) add(name string, data []byte, count redaction.Count) {
	switch {
	case !plain.MatchString(name) || len(name) > mostName:
		a.LeaveOut(fmt.Sprintf("the file %q", name), "its name is not one that an archive may have")
		return
	case slices.ContainsFunc(a.files, func(f File) bool { return f.Name == name }):
		a.LeaveOut("another file "+name, "the archive has that name already")
		return
	case len(data) > a.room:
		a.LeaveOut(name, fmt.Sprintf("the archive is full: it holds %d MiB", mostBytes>>20))
		return
	}
	a.room -= len(data)
	a.files = append(a.files, newFile(name, data, count))
}

func newFile(name string, data []byte, count redaction.Count) File {
	sum := sha256.Sum256(data)
	return File{Name: name, Bytes: len(data), SHA256: hex.EncodeToString(sum[:]), Redacted: count, data: data}
}

// all returns contents.json, then the files sorted by name.
func (a *Archive) all() ([]File, error) {
	files := slices.SortedFunc(slices.Values(a.files), func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	list, err := json.MarshalIndent(contents{Made: a.now, Files: files, LeftOut: a.leftOut}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", contentsName, err)
	}
	return append([]File{newFile(contentsName, append(list, '\n'), nil)}, files...), nil
}

// Free fails if a file has a name already.
func Free(name string) error {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s is there already, and is not overwritten: name a file that is not there", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}

// Save writes the archive to a file that is not there yet, which its owner alone can read.
func (a *Archive) Save(name string) error {
	if err := Free(name); err != nil {
		return err
	}
	files, err := a.all()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".new-bundle-") // of mode 0600
	if err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // it has another name by then, unless something failed
	err = a.pack(file, files)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	err = unix.Renameat2(unix.AT_FDCWD, file.Name(), unix.AT_FDCWD, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return Free(name)
	}
	if err != nil {
		return fmt.Errorf("giving the bundle its name %s: %w", name, err)
	}
	return nil
}

// pack writes the files as a compressed archive.
func (a *Archive) pack(to io.Writer, files []File) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: int64(f.Bytes), Mode: 0o600, ModTime: a.now, Format: tar.FormatPAX}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := io.Copy(archive, bytes.NewReader(f.data)); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}
