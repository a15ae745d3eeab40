// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsroute"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/autoscaling"
	"muster.dev/muster/internal/cloud/cloudwatchlogs"
	"muster.dev/muster/internal/cloud/ec2"
	"muster.dev/muster/internal/cloud/ecr"
	"muster.dev/muster/internal/cloud/eks"
	"muster.dev/muster/internal/cloud/eksauth"
	"muster.dev/muster/internal/cloud/elasticfilesystem"
	"muster.dev/muster/internal/cloud/kms"
	"muster.dev/muster/internal/cloud/ssm"
	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/image/registrystore"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/storage/filestore"
)

// Config is what the APIs need.
type Config struct {
	Identity *identityservice.Service
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what was written before.
	Management client.Client
	Metrics    prometheus.Registerer // may be nil
	// PageKey is the file of the key that seals the tokens of lists. It is made if it is not there.
	PageKey string
	Region  string
	// LocalMachines says whether this host can make machines of namespaces.
	LocalMachines bool
	// UserData reads what a machine was launched with; machine.ErrNotFound if nothing.
	UserData func(id string) ([]byte, error)
	// Cluster makes a client of a cluster that is served, by its namespace.
	Cluster func(namespace string) (client.Client, error)
	// Pods knows which pods of the clusters have which identities.
	Pods Pods
	// Deprecated reads which deprecated APIs of a cluster that is served, by its namespace, were requested.
	Deprecated func(ctx context.Context, namespace string) (deprecation.Seen, error)
	// Images is the directory of the image registry.
	Images string
	// FileSystems is the directory of the file systems.
	FileSystems string
	// Usage says of a VPC's subnets who has addresses of them.
	Usage func(vpc string) ([]machine.Usage, error)
	// HostRanges are the addresses of the host for load balancers, which are no VPC's.
	HostRanges func() ([]netip.Prefix, error)
}

// Handlers are the handlers of the services, by the name that requests are signed for.
func Handlers(c Config) (map[string]http.Handler, error) {
	front, err := newFront(c)
	if err != nil {
		return nil, err
	}
	refuse(c.Identity)
	c.Identity.HandleUnsigned(func(r *http.Request, form []byte) string {
		return awsroute.Unsigned(awsshape.Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header, Body: form})
	})
	handlers := map[string]http.Handler{}
	for _, service := range front.Services() {
		if handlers[service], err = front.Handler(service); err != nil {
			return nil, err
		}
	}
	return handlers, nil
}

// refuse has the identity service give the list's reasons for the actions of STS and IAM that are refused, as the front gives them for other services'.
func refuse(identity *identityservice.Service) {
	for _, service := range awsactions.Services() {
		if service.Name != "sts" && service.Name != "iam" {
			continue
		}
		for _, action := range service.Actions {
			if action.Mark == awsactions.Refused {
				identity.Refuse(service.Name, action.Name, action.Reason)
			}
		}
	}
}

// launchWait is many times what the launch of a machine takes until it has its address, on a host that is busy.
const launchWait = 5 * time.Second

func newFront(c Config) (*awsfront.Front, error) {
	if c.Identity == nil {
		return nil, errors.New("the AWS APIs need an identity service")
	}
	sealing, err := pageKey(c.PageKey)
	if err != nil {
		return nil, err
	}
	front, err := awsfront.New(awsfront.Config{Gate: gate{c.Identity}, Metrics: c.Metrics, Report: report})
	if err != nil {
		return nil, err
	}
	var policies []string
	for _, p := range accesspolicy.Policies() {
		policies = append(policies, p.Name)
	}
	pages := nexttoken.NewSealer(sealing)
	if err := ec2.Register(front, ec2.Config{
		Management: c.Management, Pages: pages, Region: c.Region, LocalMachines: c.LocalMachines, UserData: c.UserData, Usage: c.Usage, HostRanges: c.HostRanges,
		LaunchWait: launchWait,
	}); err != nil {
		return nil, err
	}
	if err := autoscaling.Register(front, autoscaling.Config{Management: c.Management, Pages: pages, Region: c.Region}); err != nil {
		return nil, err
	}
	key := kms.Check(c.Management, c.Region, time.Now)
	if err := kms.Register(front, kms.Config{Management: c.Management, Pages: pages, Region: c.Region}); err != nil {
		return nil, err
	}
	if err := cloudwatchlogs.Register(front, cloudwatchlogs.Config{Management: c.Management, Pages: pages, Region: c.Region, Key: key}); err != nil {
		return nil, err
	}
	if err := ecr.Register(front, ecr.Config{Store: registrystore.New(c.Images), Pages: pages, Region: c.Region, Login: gate{c.Identity}.login}); err != nil {
		return nil, err
	}
	files := filestore.New(c.FileSystems)
	if err := elasticfilesystem.Register(front, elasticfilesystem.Config{
		Management: c.Management, Pages: pages, Region: c.Region, Used: func(ctx context.Context, id string) (int64, error) {
			used, err := files.Usage(ctx, filestore.Place{FileSystemID: id, Path: "/"})
			return used.Bytes, err
		},
	}); err != nil {
		return nil, err
	}
	if err := ssm.Register(front, ssm.Config{Pages: pages, Region: c.Region}); err != nil {
		return nil, err
	}
	if err := eks.Register(front, eks.Config{
		Management: c.Management, Pages: pages, Region: c.Region, LocalMachines: c.LocalMachines,
		Cluster: c.Cluster, Deprecated: c.Deprecated, Key: key, KeyPair: ec2.HasKeyPair(c.Management), AccessPolicies: policies, AccessPolicy: func(arn string) error { _, err := accesspolicy.Lookup(arn); return err },
	}); err != nil {
		return nil, err
	}
	if err := eksauth.Register(front, eksauth.Config{Region: c.Region, Account: c.Pods, Assume: assumeForPod(c.Identity, c.Pods)}); err != nil {
		return nil, err
	}
	return front, nil
}

// gate is the identity service, by which requests of all services come in.
type gate struct{ identity *identityservice.Service }

func (g gate) Admit(r *http.Request, service string, body []byte) (awsfront.Caller, error) {
	caller, err := g.identity.Admit(r, service, body)
	if err != nil {
		return nil, err
	}
	return caller, nil
}

func (g gate) Authorize(c awsfront.Caller, action, resource string, conditions map[string][]string) error {
	caller, ok := c.(identityservice.Caller)
	if !ok {
		return errors.New("the caller did not come in here")
	}
	return g.identity.Authorize(caller, action, resource, conditions)
}

// login makes a password of the image registry for a caller.
func (g gate) login(c awsfront.Caller) (string, time.Time, error) {
	caller, ok := c.(identityservice.Caller)
	if !ok {
		return "", time.Time{}, errors.New("the caller did not come in here")
	}
	return g.identity.Login(caller)
}

func report(ctx context.Context, o awsfront.Outcome) {
	identityservice.Report(ctx, identityservice.Outcome{
		RequestID: o.RequestID, Action: o.Action, Resource: o.Resource, Code: o.Code, Message: o.Message, Cause: o.Cause,
	})
}
