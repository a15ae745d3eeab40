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

// OfAccount returns the shipper of an account's logs. Run has one more process of the account run, and does nothing for
// one that runs; clusters lists the clusters that run.
func OfAccount(a component.Account, run func(component.Spec) error, clusters func() []component.Config, log *slog.Logger) (*Shipper, error) {
	store := statedir.LogStore(a.State)
	return New(Config{
		Sources: func() (all []Source) {
			for _, c := range clusters() {
				all = append(all, OfCluster(c)...)
			}
			return all
		},
		Store: &logstore.Store{Socket: store.Socket()}, Record: store.Shipped(), Log: log,
		Ready: func() error {
			if err := unbuilt(a.BinDir); err != nil {
				return err
			}
			if err := os.MkdirAll(store.Data(), 0o700); err != nil {
				return fmt.Errorf("making the directory of logs: %w", err)
			}
			return run(component.LogStoreSpec(a))
		},
	})
}
