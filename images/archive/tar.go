// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// entry is a file, or a directory if its name ends in a slash.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// rootfs is the tar of an image's file system: the programs, a place for temporary files, names for the users, and if
// there are any the certificate authorities, where Go programs look for them first.
func rootfs(programs []entry, authorities []byte) ([]byte, error) {
	const users = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	const groups = "root:x:0:\nnonroot:x:65532:\n"
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	entries := []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte(groups)},
		{name: "etc/passwd", mode: 0o644, content: []byte(users)},
	}
	if authorities != nil {
		entries = append(entries, entry{name: "etc/ssl/", mode: 0o755}, entry{name: "etc/ssl/certs/", mode: 0o755},
			entry{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities})
	}
	for _, entry := range append(append(entries, entry{name: "tmp/", mode: 0o1777}), programs...) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: entry.name, Mode: entry.mode, Size: int64(len(entry.content)), ModTime: epoch()}
		if entry.name[len(entry.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(entry.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// pack writes the files below root to a tar at path, in order of their names and with nothing of this machine's in it.
func pack(path, root string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closing := file.Close(); err == nil {
			err = closing
		}
	}()
	writer := tar.NewWriter(file)
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: epoch()})
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: epoch()}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		return copyFile(writer, filepath.Join(root, name))
	})
	if err != nil {
		return err
	}
	return writer.Close()
}

func copyFile(to io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}
