// SPDX-License-Identifier: Apache-2.0

// Conformance runs upstream's e2e suite against a cluster of its own: two local machines in a new state directory,
// which are gone when it ends. tools/conformance.sh builds the suite and the programs that its images hold; this packs
// the images, loads them into the machines (nothing is pulled), runs the chosen specs and says what came of them. It
// fails unless every spec that was chosen passed. It is built once for each minor of Kubernetes, with the module of that
// minor, which settles the images and the cluster's version.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// options are what a person chooses.
type options struct {
	root      string // the checkout
	labels    string
	rest      bool // tests by restLabels, and more than a pass is good
	focus     string
	skip      string
	processes int
	timeout   time.Duration
	keep      bool
	registry  bool // serve images, on a machine
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the checkout, with what was built in bin/ and .build/conformance/")
	flag.StringVar(&o.labels, "labels", conformanceLabels, "label filter of the specs, as ginkgo takes it")
	flag.BoolVar(&o.rest, "rest", false, "run what is not of [Conformance] instead; a spec that skips itself, or fails for what this kind of host cannot do, is told and is no failure")
	flag.StringVar(&o.focus, "focus", "", "regular expression that names of specs must match")
	flag.StringVar(&o.skip, "skip", "", "regular expression that names of specs must not match")
	flag.IntVar(&o.processes, "processes", 6, "specs to run at the same time; those that are serial run after them, one by one")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Hour, "how long all specs may take together")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster running")
	flag.BoolVar(&o.registry, "registry", false, "serve a machine its own images, in place of registry.k8s.io: what a run starts on its machines")
	flag.Parse()
	if o.rest {
		o.labels, o.skip = restLabels, either(o.skip, restSkip)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

// either returns a regular expression that matches what one of two expressions matches. The first may be "".
func either(one, other string) string {
	if one == "" {
		return other
	}
	return "(" + one + ")|" + other
}

// suiteMinor returns the minor of Kubernetes whose suite this program is built with, as in "1.36".
func suiteMinor() (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				parts := strings.SplitN(strings.TrimPrefix(module.Version, "v"), ".", 3)
				return strings.Join(parts[:min(2, len(parts))], "."), nil
			}
		}
	}
	return "", errors.New("this program does not say which version of k8s.io/kubernetes it is built with")
}

func run(ctx context.Context, o options) (err error) {
	if o.registry {
		return serveRegistry(ctx, os.Stdin)
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	minor, err := suiteMinor()
	if err != nil {
		return err
	}
	work := filepath.Join(o.root, ".build", "conformance", minor)
	archive := filepath.Join(work, "images.tar")
	index, err := packImages(ctx, o.root, work, archive)
	if err != nil {
		return fmt.Errorf("packing the images of the specs: %w", err)
	}

	c, err := startCluster(ctx, filepath.Join(o.root, "bin"), minor, nodes)
	if c != nil {
		// The end of the run must not keep the cluster from being taken down.
		defer func() { err = errors.Join(err, c.end(context.WithoutCancel(ctx), o.keep)) }()
	}
	if err != nil {
		return err
	}
	if err := c.load(ctx, archive, index); err != nil {
		return err
	}

	reports := filepath.Join(work, "report")
	started := time.Now()
	suiteErr := runSuite(ctx, o, c, filepath.Join(work, "bin"), reports)
	outcome, err := readReport(filepath.Join(reports, reportFile))
	if err != nil {
		return errors.Join(suiteErr, err)
	}
	if o.rest {
		outcome.limited(limits)
	}
	fmt.Println(outcome.text(time.Since(started), o.rest))
	if o.rest {
		fmt.Println("Not run: specs of upstream's CSI and DRA drivers and of NFS servers, whose images are not made here: " + restSkip)
	}
	fmt.Printf("%s has %s, %s and %s\n", reports, reportFile, junitFile, logFile)
	if err := outcome.problem(o.rest); err != nil {
		return err
	}
	if len(outcome.beyond) > 0 {
		return nil // of which ginkgo knows nothing
	}
	return suiteErr
}
