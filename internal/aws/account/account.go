// SPDX-License-Identifier: Apache-2.0

// Package account keeps the account file of a state directory: the account's id, its region and a loopback address of
// its own. The file is made once, at the first start, and never written again: names of nodes, ARNs and tokens of every
// cluster are made of what it says.
//
// A file that is damaged, is missing in a directory in use, or is of a later version is refused, in one line. Nothing
// is guessed in its place: with another region or address, everything that was issued would be somebody else's.
package account

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// DefaultID is the id of the one account that a state directory has.
const DefaultID = "000000000000"

// version of the file's form.
const version = 1

// Account is what the file says.
type Account struct {
	// ID is twelve digits.
	ID string
	// Region that the account and everything in it is in.
	Region region.Region
	// Address is a loopback address that no other account on this host is likely to have.
	Address netip.Addr
}

// file is the form on disk.
type file struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Region  string `json:"region"`
	Address string `json:"address"`
}

// Read reads the account file. The error is fs.ErrNotExist in a directory that was never used.
func Read(dir statedir.Dir) (Account, error) {
	raw, err := os.ReadFile(dir.Account())
	switch {
	case errors.Is(err, fs.ErrNotExist) && InUse(dir): // not wrapped: it must not be taken for a directory that is new
		return Account{}, fmt.Errorf("reading the account: %s is missing, and the state directory is in use: restore the file from a backup, "+
			"or remove everything with `muster down --delete`", dir.Account())
	case err != nil:
		return Account{}, fmt.Errorf("reading the account: %w", err)
	}
	account, err := parse(raw)
	if err != nil {
		return Account{}, fmt.Errorf("reading the account: %s %w", dir.Account(), err)
	}
	return account, nil
}

// InUse reports whether anything in a state directory was made of what its account says: keys, or a cluster. A layout
// alone is what a crash before the account was made leaves.
func InUse(dir statedir.Dir) bool {
	return slices.ContainsFunc([]string{dir.Clusters(), dir.PKI()}, func(path string) bool {
		entries, err := os.ReadDir(path)
		return len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
	})
}

// Make returns the account of a state directory, which has to exist, and makes its file if there is none. An empty name
// of a region stands for the one that the account is in, or for the default. An account that is in another region is an
// error.
func Make(dir statedir.Dir, regionName string) (Account, error) {
	return makeWith(dir, regionName, rand.Reader)
}

func makeWith(dir statedir.Dir, regionName string, random io.Reader) (Account, error) {
	account, err := Plan(dir, regionName)
	if err != nil || account.Address.IsValid() {
		return account, err
	}
	if account.Address, err = chooseAddress(random); err != nil {
		return Account{}, err
	}
	raw, err := json.MarshalIndent(file{version, account.ID, account.Region.Name, account.Address.String()}, "", "  ")
	if err != nil {
		return Account{}, fmt.Errorf("encoding the account: %w", err)
	}
	if err := atomicfile.Write(dir.Account(), append(raw, '\n'), 0o600); err != nil {
		return Account{}, err
	}
	return account, nil
}

// Plan is Make without a change: the address of an account that is not made yet is not valid.
func Plan(dir statedir.Dir, regionName string) (Account, error) {
	account, err := Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if regionName == "" {
			regionName = region.Default
		}
		account = Account{ID: DefaultID}
		account.Region, err = region.Find(regionName)
		return account, err
	}
	if err != nil || regionName == "" || regionName == account.Region.Name {
		return account, err
	}
	if _, err := region.Find(regionName); err != nil {
		return Account{}, err
	}
	return Account{}, fmt.Errorf("the account in %s is in %s, not %s, and stays there: leave out --region, or choose another --state-dir",
		dir, account.Region.Name, regionName)
}

// parse reads the file's text. The text of its error follows the file's name.
func parse(raw []byte) (Account, error) {
	const mend = "; restore it from a backup"
	var read file
	if err := decode(raw, &read); err != nil {
		return Account{}, fmt.Errorf("is damaged: %w"+mend, err)
	}
	switch {
	case read.Version > version:
		return Account{}, fmt.Errorf("has version %d, and this Muster knows %d: use the Muster that made it, or a newer one", read.Version, version)
	case read.Version != version:
		return Account{}, fmt.Errorf("is damaged: version is %d and must be %d"+mend, read.Version, version)
	case read.ID != DefaultID:
		return Account{}, fmt.Errorf("is damaged: id is %q and must be %q"+mend, read.ID, DefaultID)
	}
	account := Account{ID: read.ID}
	var err error
	if account.Region, err = region.Find(read.Region); err != nil {
		return Account{}, fmt.Errorf("is damaged: region: %w"+mend, err)
	}
	if account.Address, err = netip.ParseAddr(read.Address); err != nil || !own(account.Address) {
		return Account{}, fmt.Errorf("is damaged: address is %q and must be one in %s"+mend, read.Address, addresses)
	}
	return account, nil
}

// decode takes one object with exactly the keys of a file, each once and written as here: encoding/json takes keys in
// any case, and of a key twice the last.
func decode(raw []byte, into *file) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	fields := map[string]any{"version": &into.Version, "id": &into.ID, "region": &into.Region, "address": &into.Address}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		field, ok := fields[name]
		if !ok {
			return fmt.Errorf("key %q is unknown, or there twice", name)
		}
		delete(fields, name)
		if err := decoder.Decode(field); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the object")
	}
	return nil // a key that is missing leaves an empty value, which no field may have
}

// addresses are what the account's own is chosen from. Far from 127.0.0.1, which every program listens on, 127.0.0.53
// of systemd-resolved and 127.0.1.1 of Debian's /etc/hosts, two accounts on one host choose the same with one chance in
// four million.
var addresses = netip.MustParsePrefix("127.64.0.0/10")

// own reports whether an address may be an account's. Not so the last byte 0 and 255, which look like a network's and a
// broadcast's.
func own(address netip.Addr) bool {
	if !addresses.Contains(address) {
		return false
	}
	last := address.As4()[3]
	return last != 0 && last != 255
}

// chooseAddress draws an address.
func chooseAddress(random io.Reader) (netip.Addr, error) {
	for {
		drawn := [4]byte{127}
		if _, err := io.ReadFull(random, drawn[1:]); err != nil {
			return netip.Addr{}, fmt.Errorf("choosing the account's address: %w", err)
		}
		drawn[1] = 64 | drawn[1]&63
		if address := netip.AddrFrom4(drawn); own(address) {
			return address, nil
		}
	}
}
