"""A control plane from Python, typed: `curtsy.api.connect` makes a Server, `connect_async` an AsyncServer."""
