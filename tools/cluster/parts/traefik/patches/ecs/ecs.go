// Package ecs takes the place of Traefik's provider for Amazon ECS: its options are none, and who asks for it gets an error.
package ecs

import (
	"errors"

	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/provider"
	"github.com/traefik/traefik/v3/pkg/safe"
)

// Provider is where Traefik's static configuration expects the provider.
type Provider struct{}

var _ provider.Provider = (*Provider)(nil)

// Init refuses the provider: the SDK of AWS is not in this program.
func (*Provider) Init() error {
	return errors.New("this Traefik is built without the provider for Amazon ECS")
}

// Provide never runs, since Init refuses.
func (*Provider) Provide(chan<- dynamic.Message, *safe.Pool) error {
	return nil
}
