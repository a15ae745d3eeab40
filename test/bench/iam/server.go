// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// server is an authenticator that an API server can ask: how it is run beside a control plane.
type server struct {
	address, kubeconfig string
	version             string // of TokenReview
	program             string
	args                []string
}

// server prepares what both ends need: certificates, the webhook's kubeconfig, files.
func (b *bench) server(ctx context.Context, s system, dir string) (server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return server{}, err
	}
	made := server{address: address, kubeconfig: filepath.Join(dir, "kubeconfig.yaml"), version: "v1"}
	if s.name == "shipped" || s.name == "pool" {
		made.version = "v1beta1"
		idle := "0"
		if s.name == "pool" {
			idle = "256"
		}
		made.args = []string{"upstream", "-dir", dir, "-kubeconfig", made.kubeconfig, "-sts", b.place.sts, "-ca", b.place.ca(), "-idle", idle, "-address", address}
		if made.program, err = os.Executable(); err != nil {
			return server{}, fmt.Errorf("finding this program: %w", err)
		}
		config, err := upstreamConfig(dir, made.kubeconfig, address)
		if err != nil {
			return server{}, err
		}
		return made, config.GenerateFiles()
	}
	file, mapped := filepath.Join(dir, "authenticator.yaml"), filepath.Join(dir, "mappings.yaml")
	backend := fmt.Sprintf("backend: sts\nsts: {endpoints: {%s: %q}, ca: %s}\n", host, "https://"+b.place.sts, b.place.ca())
	if s.name == "own-whole" {
		made := credential(b.place.socket(), "authenticator")
		backend = fmt.Sprintf("backend: muster\nmuster: {socket: %s, ca: %s, credential: %s}\n", b.place.socket(), made.CA, made.File)
	}
	for name, content := range map[string]string{mapped: mappings, file: fmt.Sprintf(authenticatorFile, address, dir, mapped) + backend} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return server{}, fmt.Errorf("writing the authenticator's files: %w", err)
		}
	}
	made.program, made.args = b.options.muster, []string{"authenticator", "--config", file}
	init := exec.CommandContext(ctx, made.program, "authenticator", "init", "--dir", dir, "--kubeconfig-out", made.kubeconfig, "--address", address)
	if out, err := init.CombinedOutput(); err != nil {
		return server{}, fmt.Errorf("muster authenticator init: %w: %s", err, out)
	}
	return made, nil
}

// It is set up as in an existing cluster, but for the mappings, which are in a file for both.
const authenticatorFile = `apiVersion: authenticator.muster.dev/v1alpha1
kind: AuthenticatorConfiguration
clusterID: ` + cluster + `
server: {bindAddress: %q, stateDir: %s, healthAddress: none}
mapping: {fileOnly: true, file: %s}
`

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// answers reports whether somebody listens.
func answers(ctx context.Context, address string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("nobody listens on %s: %w", address, err)
	}
	return c.Close()
}
