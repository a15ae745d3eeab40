// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/cmd/muster/terminal"
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
	data, err := terminal.ReadInput(c.In, file, "the nodes", maxNodes)
	if err != nil {
		return nil, err
	}
	nodes, err := facts.ReadNodes(data)
	if err != nil {
		return nil, fmt.Errorf("%s %w", file, err)
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
