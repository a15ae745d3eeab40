// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// OfAccount reads where the issuers of the account's clusters answer, which was said at the first start.
func OfAccount(dir statedir.Dir) (Endpoint, error) {
	at, err := ReadEndpoint(dir.Issuers())
	if errors.Is(err, fs.ErrNotExist) {
		return Endpoint{}, fmt.Errorf("reading where issuers answer: %s is missing, and the state directory is in use: restore the file from a backup, or remove everything with `muster down --delete`", dir.Issuers())
	}
	return at, err
}

// EnsureCluster returns the issuer of a cluster, which is made with the cluster and kept.
func EnsureCluster(state statedir.Dir, dir statedir.Cluster) (component.Issuer, error) {
	at, err := OfAccount(state)
	if err != nil {
		return component.Issuer{}, err
	}
	_, noData := os.Stat(filepath.Join(dir.Etcd(), "member"))
	i, err := Ensure(dir.Issuer(), at, !errors.Is(noData, fs.ErrNotExist), rand.Reader)
	if err != nil {
		return component.Issuer{}, err
	}
	return component.Issuer{URL: i.String(), Keys: i.Keys(), ID: i.ID}, nil
}

// Planned is the issuer of a cluster for a dry run: an issuer that would be chosen is shown in capitals.
func Planned(dir statedir.Cluster) (component.Issuer, error) {
	i, err := Read(dir.Issuer())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		const url = "https://ADDRESS/id/ID"
		return component.Issuer{URL: url, Keys: url + "/keys", ID: "ID"}, nil
	case err != nil:
		return component.Issuer{}, err
	}
	return component.Issuer{URL: i.String(), Keys: i.Keys(), ID: i.ID}, nil
}
