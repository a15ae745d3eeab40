// SPDX-License-Identifier: Apache-2.0

// Command tables writes the tables of internal/aws/awstable from the source of AWS's SDK for Go, in the versions that
// this module's go.mod names. It reads the source and runs none of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/aws/awsshape"
)

// limit is what a tracked file may have.
const limit = 256 << 10

func main() {
	into := flag.String("into", "../../internal/aws/awstable", "the directory of the tables")
	only := flag.String("only", "", "one service alone")
	flag.Parse()
	for _, s := range services() {
		if *only != "" && s.name != *only {
			continue
		}
		if err := s.write(context.Background(), *into); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.name, err)
			os.Exit(1)
		}
	}
}

func (s service) write(ctx context.Context, into string) error {
	client, err := read(ctx, s.client)
	if err != nil {
		return err
	}
	text, err := s.table(client)
	if err != nil {
		return err
	}
	if len(text) > limit {
		return fmt.Errorf("the table has %d bytes: %d is the limit of a tracked file", len(text), limit)
	}
	if _, err := awsshape.Parse(text); err != nil {
		return fmt.Errorf("the table is not one: %w", err)
	}
	return os.WriteFile(filepath.Join(into, s.name+".txt"), []byte(text), 0o644) //nolint:gosec // G306: a file of the repository
}
