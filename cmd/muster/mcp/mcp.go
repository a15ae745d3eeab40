// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/programs"
)

// Program is the server's own program, beside muster's: it alone has the protocol's libraries.
const Program = "muster-mcp"

// mcpCommand holds the flags of "muster mcp".
type mcpCommand struct {
	*terminal.Options
	kubeconfig, context string
	// become replaces the process by another program.
	become func(program string, args, env []string) error
}

// NewCommand returns "muster mcp".
func NewCommand(o *terminal.Options) *cobra.Command {
	return (&mcpCommand{Options: o, become: syscall.Exec}).command()
}

func (m *mcpCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Answer a program's questions by the Model Context Protocol: explain, auth check, csr explain, logs query, status",
		Long: `Answer the questions of one program, such as an assistant, by the Model Context Protocol on standard input and output, so that what it says
about a cluster rests on evidence. The program starts the command and ends it.

The tools are explain, auth_check, csr_explain, log_query and status. Each is the command of its name with -o json, and reads only.
Secrets that can be known are taken out of the answers, which have at most 1 MiB. Who asked what is in muster logs reads. With
--kubeconfig or --context the questions are about that cluster, and the tools are those that work with any cluster.

Configuration of a client that starts it:

  {
    "mcpServers": {
      "muster": {"command": "/usr/local/bin/muster", "args": ["mcp", "--state-dir", "/var/lib/muster"]}
    }
  }

More: docs/mcp.md.`,
		Example: `  # What tools there are
  (printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}' \
    '{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'; sleep 1) | muster mcp

  # About a cluster elsewhere
  muster mcp --kubeconfig ~/.kube/config --context production`,
		RunE: func(*cobra.Command, []string) error { return m.run() },
	}
	cmd.Flags().StringVar(&m.kubeconfig, "kubeconfig", "", "kubeconfig of another cluster than those of the state directory")
	cmd.Flags().StringVar(&m.context, "context", "", "context of the kubeconfig")
	return cmd
}

// run becomes the server.
func (m *mcpCommand) run() error {
	dir, err := programs.Dir()
	if err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding muster's own program: %w", err)
	}
	program := filepath.Join(dir, Program)
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%s lacks %s: run `make build`, which makes it", dir, Program)
	}
	if _, err := m.Open(); err != nil {
		return err
	}
	args := []string{Program, "--muster=" + own, "--state-dir=" + m.StateDir}
	for flag, value := range map[string]string{"cluster": m.Cluster, "kubeconfig": m.kubeconfig, "context": m.context} {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	if err := m.become(program, args, os.Environ()); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	return nil
}
