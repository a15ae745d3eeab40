// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/platform/termsafe"
)

// maxNodes is the most bytes of Nodes that are read: 5,000 of 50 KiB.
const maxNodes = 256 << 20

func (c *csrCommand) machines() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "machines [-f FILE]",
		Short: "Write a list of machines for the certificate controller from the Nodes of a cluster",
		Long: `Write a list of machines from the Nodes of a cluster, as the static inventory of the certificate controller reads it. Check the list
before you use it: except for its name, everything in the entry of a machine is what the node said about itself, and the controller
believes whatever is in the list.

A node that reports an address or name that cannot be a machine's, or the same one as another node, is left out with a warning. Then
the exit code is 1.`,
		Example: `  # Of the nodes of a cluster
  muster csr machines >machines.yaml

  # Of what kubectl prints
  kubectl get nodes -o json | muster csr machines -f - >machines.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes, err := c.nodes(cmd.Context(), file)
			if err != nil {
				return err
			}
			return c.printMachines(nodes)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the Nodes, as kubectl get nodes -o json prints them; - for standard input; default: ask the cluster")
	_ = cmd.MarkFlagFilename("filename", "json")
	return cmd
}

func (c *csrCommand) nodes(ctx context.Context, file string) ([]corev1.Node, error) {
	if file == "" {
		p, err := c.cluster(c.Options)
		if err != nil {
			return nil, err
		}
		var list corev1.NodeList
		err = p.ReadAll(ctx, &list)
		return list.Items, err
	}
	in := c.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("reading the nodes: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxNodes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the nodes: %w", err)
	case len(data) > maxNodes:
		return nil, fmt.Errorf("the nodes in %s have more than %d MiB", file, maxNodes>>20)
	}
	return readNodes(file, data)
}

// readNodes reads what kubectl get nodes -o json prints, for several nodes or for one.
func readNodes(file string, data []byte) ([]corev1.Node, error) {
	var list struct {
		Kind  string        `json:"kind"`
		Items []corev1.Node `json:"items"`
	}
	if data = bytes.TrimSpace(data); !bytes.HasPrefix(data, []byte("{")) {
		return nil, fmt.Errorf("%s is not JSON: make it with kubectl get nodes -o json", file)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("reading the nodes in %s: %w", file, err)
	}
	nodes := list.Items
	if list.Kind == "Node" {
		nodes = make([]corev1.Node, 1)
		if err := json.Unmarshal(data, &nodes[0]); err != nil {
			return nil, fmt.Errorf("reading the node in %s: %w", file, err)
		}
	}
	for _, n := range nodes {
		if n.Kind != "Node" && (n.Kind != "" || list.Kind != "NodeList") {
			return nil, fmt.Errorf("%s has an object of kind %q: make it with kubectl get nodes -o json, which prints Nodes alone", file, n.Kind)
		}
	}
	return nodes, nil
}

func (c *csrCommand) printMachines(nodes []corev1.Node) error {
	if len(nodes) == 0 {
		return errors.New("there are no Nodes to list; an empty list is: machines: []")
	}
	list, leftOut, err := facts.ListOfNodes(nodes)
	if err != nil {
		return err
	}
	for _, l := range leftOut {
		if _, err := fmt.Fprintf(c.Err, "Warning: node %q is left out: %s\n", l.Node, termsafe.Line(l.Why)); err != nil {
			return err
		}
	}
	if _, err := c.Out.Write(list); err != nil {
		return err
	}
	if len(leftOut) > 0 {
		return fmt.Errorf("%d of %d nodes are left out: check them and add the right ones to the list by hand", len(leftOut), len(nodes))
	}
	return nil
}
