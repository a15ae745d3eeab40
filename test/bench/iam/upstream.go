// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/aws-iam-authenticator/pkg/config"
	"sigs.k8s.io/aws-iam-authenticator/pkg/mapper"
	"sigs.k8s.io/aws-iam-authenticator/pkg/metrics"
	upstreamserver "sigs.k8s.io/aws-iam-authenticator/pkg/server"
)

// upstreamMain is aws-iam-authenticator's server, as its command runs it, with the way to STS turned.
func upstreamMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory of its certificate")
	kubeconfig := flags.String("kubeconfig", "", "the webhook's kubeconfig")
	sts := flags.String("sts", "", "address of the fake STS")
	ca := flags.String("ca", "", "the fake STS's authority")
	idle := flags.Int("idle", 0, "idle connections that are kept; Go's default if 0")
	address := flags.String("address", "", "where it answers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// Instance metadata is not on loopback, and there is none.
	for name, value := range map[string]string{"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": region} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := turnDefaultTransport(*sts, *ca, *idle); err != nil {
		return err
	}
	c, err := upstreamConfig(*dir, *kubeconfig, *address)
	if err != nil {
		return err
	}
	metrics.InitMetrics(prometheus.DefaultRegisterer)
	stop := make(chan struct{})
	s := upstreamserver.New(c, stop)
	go func() {
		<-ctx.Done()
		s.Close()
	}()
	s.Run(stop)
	return nil
}

// upstreamConfig is its configuration, with the defaults of its command.
func upstreamConfig(dir, kubeconfig, address string) (config.Config, error) {
	at, port, err := net.SplitHostPort(address)
	if err != nil {
		return config.Config{}, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return config.Config{}, fmt.Errorf("the port of %s: %w", address, err)
	}
	return config.Config{
		PartitionID: "aws", ClusterID: cluster, Hostname: at, Address: at, HostPort: number, StateDir: dir,
		GenerateKubeconfigPath: kubeconfig, KubeconfigPregenerated: true, BackendMode: []string{mapper.ModeMountedFile},
		RoleMappings:            []config.RoleMapping{{RoleARN: role, Username: "bench:{{SessionName}}", Groups: []string{"bench"}}},
		EC2DescribeInstancesQps: 15, EC2DescribeInstancesBurst: 5,
	}, nil
}
