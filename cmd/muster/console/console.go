// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/explain"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/statedir"
)

// consoleCommand holds the flags of "muster console".
type consoleCommand struct {
	*terminal.Options
	planes kinds.Dialers
	now    func() time.Time
	// entries connects to a cluster for the kinds that say who gets in.
	entries func(o *terminal.Options) (*kinds.Client, error)
	// show has the user's browser show a file.
	show func(ctx context.Context, file string) error

	port     int
	open     bool
	readOnly bool
}

// NewCommand returns "muster console".
func NewCommand(o *terminal.Options) *cobra.Command {
	return (&consoleCommand{Options: o, planes: kinds.NewDialers(), now: time.Now, entries: entriesOf, show: showInBrowser}).command()
}

func (c *consoleCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Show clusters, machines, certificates, access, changes and logs on pages in a browser, until interrupted",
		Long: `Serve pages about the installation to a browser on this host, until the command is interrupted: the clusters with their machines by
zone and all that is wrong now, each machine with its join in milliseconds and why it is as it is, certificates with the outcome of each
rule, who becomes whom and who was refused, changes with their steps, and the answers of log queries. Pages stay current, and each has the
command that says the same. One page makes clusters and node groups, as muster create does; with --read-only there is none, and nothing is
changed.

The command prints an address that is good once, for ten minutes. Enter on a terminal prints another one. The console listens on a
loopback address of its own, which is another one each time. From elsewhere, lead a port there and open the same address at localhost:

  ssh -L 8080:ADDRESS:PORT HOST

What is read is read with the rights of the user who runs the command, and written down before: muster logs reads. The same data is there
as JSON under /api/. More: docs/console.md.`,
		Example: `  muster console
  muster console --open
  muster console --read-only
  muster console --cluster blue --port 8443`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().IntVar(&c.port, "port", 0, "port to listen on; 0 for one that is free")
	cmd.Flags().BoolVar(&c.open, "open", false, "have the browser of this desktop open the console")
	cmd.Flags().BoolVar(&c.readOnly, "read-only", false, "make nothing: no page and no request that makes clusters or node groups")
	return cmd
}

// run serves until the context ends.
func (c *consoleCommand) run(ctx context.Context) error {
	const mostPort = 1<<16 - 1
	if c.port < 0 || c.port > mostPort {
		return terminal.UsageError{Err: fmt.Errorf("invalid --port %d: must be from 0 to %d", c.port, mostPort)}
	}
	dir, err := c.OpenExisting()
	if err != nil {
		return err
	}
	asker, err := explain.NewAsker(c.Options, c.planes, c.now)
	if err != nil {
		return err
	}
	record, by := readaudit.Of(dir), readaudit.Self()
	server, err := pageserver.New(pageserver.Config{
		Source: &source{Options: c.Options, planes: c.planes, asker: asker, dir: dir, now: c.now, recorded: loadRecorded, entries: c.entries, euid: os.Geteuid(), binDir: programs.Dir, service: controlsocket.NewClient(dir)},
		Record: func(as, client, request string) error {
			return record.Add(readaudit.Read{Time: c.now().UTC(), By: by, As: as, With: "muster console", Client: client, Command: request})
		},
		Flags: c.flags(), Region: regionOf(dir), ReadOnly: c.readOnly, Logger: slog.New(slog.NewTextHandler(c.Err, nil)), Now: c.now,
	})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", netip.AddrPortFrom(ownLoopback(chance()), uint16(c.port)).String())
	if err != nil {
		return fmt.Errorf("listening for the console (--port %d): %w", c.port, err)
	}
	address := func() string { return "http://" + listener.Addr().String() + server.Ticket() }
	fmt.Fprintln(c.Out, address())
	fmt.Fprintln(c.Err, "This address opens the console once, and is void ten minutes from now. Ctrl-C ends the console.")
	fmt.Fprintf(c.Err, "IAM identities sign in at http://%s/sign-in with what this prints: aws eks get-token --cluster-name %s\n", listener.Addr(), server.Audience())
	if c.open {
		if err := c.openBrowser(ctx, address()); err != nil {
			fmt.Fprintf(c.Err, "Warning: no browser was opened: %v\n", err)
		}
	}
	if file, ok := c.In.(*os.File); ok && terminal.Is(file) {
		fmt.Fprintln(c.Err, "Enter prints another address.")
		go func() {
			for lines := bufio.NewScanner(file); lines.Scan(); {
				fmt.Fprintln(c.Out, address())
			}
		}()
	}
	return server.Serve(ctx, listener)
}

// regionOf is the region of the account; empty if it cannot be read, which other commands say.
func regionOf(dir statedir.Dir) string {
	own, err := account.Read(dir)
	if err != nil {
		return ""
	}
	return own.Region.Name
}

// flags are those that other commands need to be about the same installation.
func (c *consoleCommand) flags() []string {
	var flags []string
	if c.Named() {
		flags = append(flags, "--state-dir="+c.StateDir)
	}
	if c.Cluster != "" {
		flags = append(flags, "--cluster="+c.Cluster)
	}
	return flags
}

// chance is three random bytes.
func chance() (raw [3]byte) {
	_, _ = rand.Read(raw[:]) // it never fails (crypto/rand)
	return raw
}

// ownLoopback is an address in 127.1.0.0 to 127.63.255.255, which depends on chance. Browsers send cookies of an address to
// all its ports, so other programs of this host must not be at the console's address. Accounts have addresses in
// 127.64.0.0/10, and load balancers in 127.128.0.0/10.
func ownLoopback(chance [3]byte) netip.Addr {
	const seconds, hosts = 63, 254
	return netip.AddrFrom4([4]byte{127, 1 + chance[0]%seconds, chance[1], 1 + chance[2]%hosts})
}

// openBrowser has a browser open an address, by a file that only the user can read: what is on a command line, every user of
// the host can read.
func (c *consoleCommand) openBrowser(ctx context.Context, address string) error {
	dir, err := os.MkdirTemp("", "muster-console-")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "open.html")
	page := `<!doctype html><meta charset="utf-8"><title>muster</title><meta http-equiv="refresh" content="0;url=` + html.EscapeString(address) + `">`
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return err
	}
	return c.show(ctx, file)
}

// showInBrowser asks the desktop to show a file.
func showInBrowser(ctx context.Context, file string) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "xdg-open", file).CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(strconv.Quote(string(out[:min(len(out), 200)]))))
	}
	return nil
}
