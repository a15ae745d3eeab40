// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/time/rate"
)

// Described is an instance as far as it says which profile's credentials it has.
type Described struct {
	ID, PrivateDNSName string
	Profile            string // ARN of its instance profile; empty if it has none
	Live               bool   // pending or running
}

// LookupConfig says where instances are.
type LookupConfig struct {
	Region    string  // that of the environment if empty
	Endpoint  string  // a URL; that of the region if empty
	PerSecond float64 // calls; 5 if 0
	Burst     int     // 10 if 0
	OnCall    func()  // before each call, if not nil
	Logger    *slog.Logger
	// Client asks; one made of the above and the environment's credentials if nil.
	Client Describer
}

// Lookup describes instances by their IDs. Every call of DescribeInstances is limited.
type Lookup struct{ source *source }

// NewLookup makes one. Nothing is asked yet.
func NewLookup(ctx context.Context, c LookupConfig) (*Lookup, error) {
	if c.Logger == nil {
		return nil, errors.New("looking up instances in EC2 needs a logger")
	}
	if c.PerSecond <= 0 {
		c.PerSecond = 5
	}
	if c.Burst <= 0 {
		c.Burst = 10
	}
	config := Config{Name: "ec2", Region: c.Region, Endpoint: c.Endpoint, Logger: c.Logger, Client: c.Client}
	if config.Client == nil {
		var err error
		if config.Client, err = client(ctx, &config); err != nil {
			return nil, err
		}
	}
	if c.OnCall != nil {
		config.Client = counted{config.Client, c.OnCall}
	}
	return &Lookup{&source{config: config, limiter: rate.NewLimiter(rate.Limit(c.PerSecond), c.Burst)}}, nil
}

// Describe returns instances by ID. IDs without an instance are missing from the answer.
func (l *Lookup) Describe(ctx context.Context, ids []string) (map[string]Described, error) {
	if len(ids) > maxValues {
		return nil, fmt.Errorf("asked for %d instances; at most %d at once", len(ids), maxValues)
	}
	instances, err := l.source.describe(ctx, byInstanceID, slices.Sorted(slices.Values(ids)))
	if err != nil {
		return nil, fmt.Errorf("describing instances: %w", err)
	}
	found := map[string]Described{}
	for _, i := range instances {
		d := Described{ID: aws.ToString(i.InstanceId), PrivateDNSName: aws.ToString(i.PrivateDnsName)}
		if i.IamInstanceProfile != nil {
			d.Profile = aws.ToString(i.IamInstanceProfile.Arn)
		}
		d.Live = i.State != nil && (i.State.Name == types.InstanceStateNamePending || i.State.Name == types.InstanceStateNameRunning)
		if d.ID != "" {
			found[d.ID] = d
		}
	}
	return found, nil
}
