// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is something that a layer has at a path: the copy of a file of this host (from), a link (to), text, or a
// directory if its name ends in a slash.
type file struct {
	name string
	mode int64 // 0 is 0644 for text, 0755 for what is copied and for directories
	text string
	from string
	to   string
}

// files is a layer of these files, each after the directories that it is in.
func files(list ...file) func(*tar.Writer) error {
	return func(packed *tar.Writer) error {
		for _, f := range list {
			if err := f.put(packed); err != nil {
				return fmt.Errorf("packing /%s: %w", f.name, err)
			}
		}
		return nil
	}
}

func (f file) put(packed *tar.Writer) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text))}
	content := io.Reader(strings.NewReader(f.text))
	fallback := int64(0o755)
	switch {
	case f.to != "":
		header.Typeflag, header.Linkname, fallback = tar.TypeSymlink, f.to, 0o777
	case f.from != "":
		source, err := os.Open(f.from)
		if err != nil {
			return err
		}
		defer source.Close()
		info, err := source.Stat()
		if err != nil {
			return err
		}
		header.Size, content = info.Size(), source
	case strings.HasSuffix(f.name, "/"):
		header.Typeflag = tar.TypeDir
	default:
		fallback = 0o644
	}
	if header.Mode == 0 {
		header.Mode = fallback
	}
	if err := packed.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(packed, content)
	return err
}

// leftOut are what a root of Debian packages has and an image has no use for: documents, what was this host's, and what
// is mounted over.
var leftOut = []string{
	"dev", "etc/hostname", "etc/resolv.conf", "proc", "sys", "usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man",
	"var/cache", "var/lib/apt", "var/lib/dpkg", "var/log",
}

// tree is a layer of all that is below a directory of this host, less what is left out.
func tree(root string) func(*tar.Writer) error {
	return func(packed *tar.Writer) error {
		return fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name == ".":
				return nil
			case slices.Contains(leftOut, name) && entry.IsDir():
				return fs.SkipDir
			case slices.Contains(leftOut, name):
				return nil
			}
			if err := copyEntry(packed, root, name, entry); err != nil {
				return fmt.Errorf("packing /%s: %w", name, err)
			}
			return nil
		})
	}
}

func copyEntry(packed *tar.Writer, root, name string, entry fs.DirEntry) (err error) {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	path, link := filepath.Join(root, name), ""
	if info.Mode().Type() == fs.ModeSymlink {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Uname, header.Gname = name, "", "" // names of this host's users are not the image's
	if info.IsDir() {
		header.Name += "/"
	}
	if err := packed.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	source, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	_, err = io.Copy(packed, source)
	return err
}
