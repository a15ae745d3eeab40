// SPDX-License-Identifier: Apache-2.0

// Render writes deploy/manifests: what Helm makes of the chart with the values of each file in deploy/profiles, for
// those who apply plain files. It also puts the alert rules and the dashboard into the chart, which can only read files
// of its own.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	deploy := flag.String("deploy", "..", "the directory deploy/")
	flag.Parse()
	if err := run(*deploy); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(deploy string) error {
	copies, err := chartFiles(deploy)
	if err != nil {
		return err
	}
	if err := write(deploy, copies); err != nil { // before rendering: it is the chart that is rendered
		return err
	}
	rendered, err := manifests(deploy)
	if err != nil {
		return err
	}
	return write(deploy, rendered)
}

// write writes files, whose names are below dir.
func write(dir string, files map[string][]byte) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return fmt.Errorf("making the directory of %s: %w", name, err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // G306: they are part of the source tree
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
