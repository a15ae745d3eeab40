// SPDX-License-Identifier: Apache-2.0

// Package ec2instances is the source of machines "ec2": the answers of DescribeInstances, by any endpoint that speaks
// EC2's protocol. Only this package imports the SDK.
//
// A node cannot write what EC2 says about its instance, unless its own role may change instances or network interfaces.
// All addresses of all interfaces count as the instance's, also those that a network plugin hands out to pods. EC2 is
// also asked for the owner of a name or an address. Only carrier's and customer-owned addresses are found at instances
// alone that were looked up lately: each would be one more call for every address, and no kubelet serves at them.
package ec2instances

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/logging"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
)

// NodeNames says how nodes are named after their instances.
type NodeNames string

// The ways to name nodes.
const (
	PrivateDNSName NodeNames = "private-dns-name" // ip-10-0-0-1.ec2.internal, or as the subnet says
	ResourceName   NodeNames = "resource-name"    // i-0123456789abcdef0.ec2.internal
	InstanceID     NodeNames = "instance-id"      // i-0123456789abcdef0
)

// Describer is the part of EC2 that is needed; *ec2.Client of the SDK has it.
type Describer interface {
	DescribeInstances(ctx context.Context, in *sdk.DescribeInstancesInput, options ...func(*sdk.Options)) (*sdk.DescribeInstancesOutput, error)
}

// Config says where instances are and which of them are machines.
type Config struct {
	Name     string // of the source; "ec2" if empty
	Region   string // that of the environment if empty
	Endpoint string // a URL; that of the region if empty
	// Filters limit the instances, as those of DescribeInstances do. Addresses are one machine's only within one VPC:
	// limit it to that (vpc-id), or to the cluster's tag. Otherwise a machine with the same address elsewhere is an
	// owner of it, too.
	Filters   map[string][]string
	NodeNames NodeNames // PrivateDNSName if empty
	// GroupTag is the tag that names the group of a machine; eks:nodegroup-name if empty.
	GroupTag string
	MaxAge   time.Duration // of an answer about a machine that there is; 30 s if 0
	// PerSecond and Burst limit the calls; 5 and 10 if 0.
	PerSecond float64
	Burst     int
	// OnChange is called after each change. It must be quick.
	OnChange func(facts.Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
	// Client asks; one made of the above and the environment's credentials if nil.
	Client Describer
}

// source asks EC2.
type source struct {
	config  Config
	limiter *rate.Limiter
}

// New makes the source. Nothing is asked yet.
func New(ctx context.Context, c Config) (*facts.Batch, error) {
	if c.Name == "" {
		c.Name = "ec2"
	}
	if c.NodeNames == "" {
		c.NodeNames = PrivateDNSName
	}
	if c.GroupTag == "" {
		c.GroupTag = "eks:nodegroup-name"
	}
	if c.PerSecond <= 0 {
		c.PerSecond = 5
	}
	if c.Burst <= 0 {
		c.Burst = 10
	}
	if c.Logger == nil {
		return nil, errors.New("the inventory in EC2 needs a logger")
	}
	if !slices.Contains([]NodeNames{PrivateDNSName, ResourceName, InstanceID}, c.NodeNames) {
		return nil, fmt.Errorf("nodes cannot be named by %q: use %s, %s or %s", c.NodeNames, PrivateDNSName, ResourceName, InstanceID)
	}
	for name, values := range c.Filters {
		if isOurs(name) {
			return nil, fmt.Errorf("the filter %s is what machines are looked up by; use another one", name)
		}
		if name == "" || len(values) == 0 {
			return nil, fmt.Errorf("the filter %q has no values", name)
		}
	}
	if c.Client == nil {
		var err error
		if c.Client, err = client(ctx, &c); err != nil {
			return nil, err
		}
	}
	if c.NodeNames == ResourceName && c.Region == "" {
		return nil, errors.New("the region is a part of resource names: name it in the policy")
	}
	s := &source{config: c, limiter: rate.NewLimiter(rate.Limit(c.PerSecond), c.Burst)}
	return facts.NewBatch(facts.BatchConfig{
		Name: c.Name, Valid: s.valid, Ask: s.ask, Size: maxValues, MaxAge: c.MaxAge,
		OnChange: c.OnChange, Now: c.Now, Logger: c.Logger,
	})
}

// client makes one that tries once: how often and when is the batch's to decide.
func client(ctx context.Context, c *Config) (Describer, error) {
	log := c.Logger
	options := []func(*config.LoadOptions) error{config.WithLogger(logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
		log.Debug("message of the AWS SDK", "source", c.Name, "message", fmt.Sprintf(format, args...))
	}))}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of AWS: %w", err)
	}
	if c.Region = loaded.Region; c.Region == "" {
		return nil, errors.New("the region of EC2 is not known: set it in the policy or in AWS_REGION")
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("the endpoint %q of EC2 is not a URL such as https://ec2.example", c.Endpoint)
		}
	}
	return clientOf(loaded, c.Endpoint), nil
}

func clientOf(loaded aws.Config, endpoint string) Describer {
	return sdk.NewFromConfig(loaded, func(o *sdk.Options) {
		o.Retryer = aws.NopRetryer{}
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
		o.HTTPClient = bounded{o.HTTPClient, maxAnswer}
	})
}

const (
	maxValues = 200 // of one filter, EC2's limit
	maxPages  = 20
	pageSize  = 1000
)

// ask asks for all subjects: one call for each kind of thing that they are found by, all of them at once.
func (s *source) ask(ctx context.Context, subjects []facts.Subject) (map[facts.Subject][]policy.Machine, error) {
	values := map[string][]string{}
	for _, subject := range subjects {
		for _, l := range s.lookups(subject) {
			values[l.filter] = append(values[l.filter], l.value)
		}
	}
	filters := slices.Sorted(maps.Keys(values))
	found := make([][]types.Instance, len(filters))
	group, ctx := errgroup.WithContext(ctx)
	for n, filter := range filters {
		group.Go(func() (err error) {
			slices.Sort(values[filter])
			found[n], err = s.describe(ctx, filter, slices.Compact(values[filter]))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("describing instances: %w", err)
	}
	return s.match(subjects, slices.Concat(found...)), nil
}

// describe reads all pages.
func (s *source) describe(ctx context.Context, filter string, values []string) ([]types.Instance, error) {
	in := &sdk.DescribeInstancesInput{
		Filters:    []types.Filter{{Name: &filter, Values: values}},
		MaxResults: aws.Int32(pageSize),
	}
	for _, name := range slices.Sorted(maps.Keys(s.config.Filters)) {
		in.Filters = append(in.Filters, types.Filter{Name: aws.String(name), Values: s.config.Filters[name]})
	}
	var found []types.Instance
	for range maxPages {
		if err := s.limiter.Wait(ctx); err != nil {
			return nil, err
		}
		out, err := s.config.Client.DescribeInstances(ctx, in)
		if err != nil {
			return nil, err
		}
		if out.Reservations == nil { // the SDK takes a body that is not an answer at all for an empty one
			return nil, errors.New("the answer is not EC2's: it has no set of reservations")
		}
		for _, r := range out.Reservations {
			found = append(found, r.Instances...)
		}
		if aws.ToString(out.NextToken) == "" {
			return found, nil
		}
		in.NextToken = out.NextToken
	}
	return nil, fmt.Errorf("the answer has more than %d pages", maxPages)
}

// bounded limits how much of an answer is read: a page of instances is far smaller.
type bounded struct {
	inner sdk.HTTPClient
	most  int64
}

// Do sends a request.
func (b bounded) Do(r *http.Request) (*http.Response, error) {
	response, err := b.inner.Do(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, b.most)
	}
	return response, err
}

const maxAnswer = 16 << 20
