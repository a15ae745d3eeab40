// SPDX-License-Identifier: Apache-2.0

// Archive packs static binaries into an OCI image archive that `ctr images import` and CRI runtimes take without a
// registry. The first is what the image runs by itself. The same binaries always give the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var c Config
	var arguments string
	flags := flag.NewFlagSet("archive", flag.ContinueOnError)
	flags.StringVar(&c.Name, "name", "", "the image's name with its tag, such as muster.dev/pause:v1")
	flags.StringVar(&c.User, "user", "65532", "numeric user the image runs as")
	flags.StringVar(&c.Architecture, "arch", runtime.GOARCH, "architecture the binary was built for")
	flags.StringVar(&arguments, "args", "", "default arguments, separated by spaces; a pod's args replace them")
	flags.BoolVar(&c.Roots, "roots", false, "put the public certificate authorities into the image")
	flags.Func("label", "a label KEY=VALUE of the image; repeatable", func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return fmt.Errorf("%q is not KEY=VALUE", text)
		}
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[key] = value
		return nil
	})
	output := flags.String("output", "", "the archive to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 || *output == "" {
		return fmt.Errorf("want -output FILE and a binary or more, got %q", args)
	}
	c.Binaries, c.Args = flags.Args(), strings.Fields(arguments)
	return Write(*output, c)
}
