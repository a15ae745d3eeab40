// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// Service is the name of the service in ARNs, and at the front.
const Service = "fis"

// Principal is the service as policies name it.
const Principal = "fis.amazonaws.com"

// Use is what an experiment does with its role.
type Use struct {
	Role, Experiment string // ARNs
	// Action and Resource are what IAM is asked about; the conditions are those of the resource.
	Action, Resource string
	Conditions       map[string][]string
}

// Role asks IAM whether a role lets the service in and may be used so. The error says why not.
type Role func(ctx context.Context, use Use) error

// Config is what the actions need.
type Config struct {
	awsresource.Account
	// AccountID is the account whose instances are interrupted.
	AccountID string
	Role      Role
	// State is the state of an instance in EC2's words.
	State func(*v1alpha1.Machine) string
	Log   *slog.Logger
	Now   func() time.Time
}

// Experiments has the actions, and brings experiments forward.
type Experiments struct {
	Config

	// begun has a value when there may be something to do before the next look.
	begun chan struct{}
}

// New checks what the actions need.
func New(c Config) (*Experiments, error) {
	if c.Management == nil || c.Pages == nil || c.Region == "" || c.AccountID == "" || c.Role == nil || c.State == nil || c.Now == nil {
		return nil, errors.New("the actions of experiments need a client of the management plane, a sealer of pages, a region, an account, roles, states of instances and a clock")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Experiments{c, make(chan struct{}, 1)}, nil
}

// Register adds the actions to the front.
func (e *Experiments) Register(f *awsfront.Front) {
	awsfront.Register(f, Service, "CreateExperimentTemplate", e.createTemplate())
	awsfront.Register(f, Service, "GetExperimentTemplate", e.getTemplate())
	awsfront.Register(f, Service, "ListExperimentTemplates", e.listTemplates())
	awsfront.Register(f, Service, "DeleteExperimentTemplate", e.deleteTemplate())

	awsfront.Register(f, Service, "StartExperiment", e.startExperiment())
	awsfront.Register(f, Service, "GetExperiment", e.getExperiment())
	awsfront.Register(f, Service, "ListExperiments", e.listExperiments())
	awsfront.Register(f, Service, "StopExperiment", e.stopExperiment())

	awsfront.Register(f, Service, "TagResource", e.tagResource())
	awsfront.Register(f, Service, "UntagResource", e.untagResource())
	awsfront.Register(f, Service, "ListTagsForResource", e.listTags())
}

// tell has the experiments looked at soon.
func (e *Experiments) tell() {
	select {
	case e.begun <- struct{}{}:
	default:
	}
}
