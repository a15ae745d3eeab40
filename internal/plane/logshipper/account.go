// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/platform/statedir"
)

// Asked reports whether the log store is to run from the start: there are logs, or have been, and its program is there.
func Asked(dir statedir.Dir, binDir string) bool {
	_, err := os.Stat(statedir.LogStore(dir).Data())
	return err == nil && unbuilt(binDir) == nil
}

// unbuilt says how the program of the log store is made, if it is not there.
func unbuilt(binDir string) error {
	if _, err := os.Stat(filepath.Join(binDir, component.LogStoreProgram)); err != nil {
		return fmt.Errorf("%s lacks %s: run `make logs`, which makes it", binDir, component.LogStoreProgram)
	}
	return nil
}

// Keeper is the account's log store, which runs from the moment on that something is to be kept. One Keeper is for all of the
// service that write.
type Keeper struct {
	*logstore.Store
	account component.Account
	run     func(component.Spec) error
}

// NewKeeper returns the log store of an account. Run has one more process of the account run, and does nothing for one that
// runs.
func NewKeeper(a component.Account, run func(component.Spec) error) *Keeper {
	return &Keeper{&logstore.Store{Socket: statedir.LogStore(a.State).Socket()}, a, run}
}

// Asked reports whether something was to be kept once.
func (k *Keeper) Asked() bool {
	_, err := os.Stat(statedir.LogStore(k.account.State).Data())
	return err == nil
}

// Ready has the log store run; its error says why it cannot.
func (k *Keeper) Ready() error {
	if err := unbuilt(k.account.BinDir); err != nil {
		return err
	}
	if err := os.MkdirAll(statedir.LogStore(k.account.State).Data(), 0o700); err != nil {
		return fmt.Errorf("making the directory of logs: %w", err)
	}
	return k.run(component.LogStoreSpec(k.account))
}

// OfAccount returns the shipper of an account's logs; clusters lists the clusters that run.
func OfAccount(k *Keeper, clusters func() []component.Config, log *slog.Logger) (*Shipper, error) {
	return New(Config{
		Sources: func() (all []Source) {
			for _, c := range clusters() {
				all = append(all, OfCluster(c)...)
			}
			return all
		},
		Store: k.Store, Record: statedir.LogStore(k.account.State).Shipped(), Log: log, Ready: k.Ready,
	})
}
