// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/platform/atomicfile"
)

// version of the files' form.
const version = 1

// endpointFile is the account's record on disk.
type endpointFile struct {
	Version int    `json:"version"`
	Host    string `json:"host"`
	Port    int    `json:"port"`
	// Loopback is empty unless the host is this host's own name.
	Loopback string `json:"loopback,omitempty"`
}

// issuerFile is a cluster's record on disk.
type issuerFile struct {
	Version int    `json:"version"`
	Issuer  string `json:"issuer"`
}

// ReadEndpoint reads an account's record. The error is fs.ErrNotExist if there is none.
func ReadEndpoint(path string) (Endpoint, error) {
	var file endpointFile
	if err := read(path, "where issuers answer", &file, &file.Version); err != nil {
		return Endpoint{}, err
	}
	if file.Port < 1 || file.Port > 65535 {
		return Endpoint{}, damaged(path, fmt.Errorf("port is %d and must be from 1 to 65535", file.Port))
	}
	if err := CheckHost(file.Host); err != nil {
		return Endpoint{}, damaged(path, err)
	}
	at := Endpoint{Host: file.Host, Port: file.Port}
	if file.Loopback == "" {
		return at, nil
	}
	var err error
	if at.Loopback, err = netip.ParseAddr(file.Loopback); err != nil || !at.Loopback.Is4() || !at.Loopback.IsLoopback() {
		return Endpoint{}, damaged(path, fmt.Errorf("loopback is %q and must be an IPv4 loopback address", file.Loopback))
	}
	return at, nil
}

// WriteEndpoint makes an account's record. There must be none: the caller found that out under the directory's lock.
func WriteEndpoint(path string, at Endpoint) error {
	file := endpointFile{Version: version, Host: at.Host, Port: at.Port}
	if at.Loopback.IsValid() {
		file.Loopback = at.Loopback.String()
	}
	return write(path, file)
}

// Read reads a cluster's record. The error is fs.ErrNotExist if there is none.
func Read(path string) (Issuer, error) {
	var file issuerFile
	if err := read(path, "the issuer", &file, &file.Version); err != nil {
		return Issuer{}, err
	}
	i, err := Parse(file.Issuer)
	if err != nil {
		return Issuer{}, damaged(path, fmt.Errorf("issuer: %w", err))
	}
	return i, nil
}

// Ensure returns a cluster's issuer, which it makes and records if there is none. The caller has the directory's lock.
// A cluster that was in use before is given no other issuer: its tokens, and all trust in them, name the one that was
// lost.
func Ensure(path string, at Endpoint, used bool, random io.Reader) (Issuer, error) {
	i, err := Read(path)
	switch {
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return i, err
	case used:
		return Issuer{}, fmt.Errorf("reading the issuer: %s is missing, and the cluster is in use: restore the file from a backup, or remove everything with `muster down --delete`", path)
	}
	if i, err = New(at, random); err != nil {
		return Issuer{}, err
	}
	return i, write(path, issuerFile{version, i.String()})
}

func write(path string, file any) error {
	raw, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return atomicfile.Write(path, append(raw, '\n'), 0o600)
}

// read reads a record strictly: no key may be unknown, there twice, or written in another case.
func read(path, what string, into any, has *int) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	switch {
	case *has > version:
		return fmt.Errorf("%s has version %d, and this Muster knows %d: use the Muster that made it, or a newer one", path, *has, version)
	case err != nil:
		return damaged(path, err)
	case len(strict) > 0:
		return damaged(path, strict[0])
	case *has != version:
		return damaged(path, fmt.Errorf("version is %d and must be %d", *has, version))
	}
	return nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("%s is damaged: %w; restore it from a backup", path, err)
}
