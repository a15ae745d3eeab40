// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/platform/statedir"
)

// NewSimulatorCommand returns the hidden command that runs simulated machines.
func NewSimulatorCommand() *cobra.Command {
	var stateDir, cluster, apiServer, caFile, podReader string
	command := &cobra.Command{
		Use:   "simulator",
		Short: "Run simulated machines: kubelets without containers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := statedir.Open(stateDir)
			if err != nil {
				return err
			}
			authority, err := os.ReadFile(caFile)
			if err != nil {
				return fmt.Errorf("reading certificate authority: %w", err)
			}
			simulator, err := simulated.NewSimulator(simulated.SimulatorConfig{
				State: dir, Cluster: cluster, APIServer: apiServer, CA: authority, PodReader: podReader, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			})
			if err != nil {
				return err
			}
			return simulator.Run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&stateDir, "state-dir", statedir.Default(), "directory of everything muster keeps")
	flags.StringVar(&cluster, "cluster", "", "name of the cluster whose machines it runs")
	flags.StringVar(&apiServer, "api-server", "", "URL of the API server, as https://127.0.0.1:6443")
	flags.StringVar(&podReader, "pod-reader", "", "PEM file with the certificate and key of a user who may list and watch pods")
	flags.StringVar(&caFile, "ca-file", "", "PEM file of the API server's certificate authority")
	return command
}
