"""SageMaker's APIs, as its own clients call them: control plane, runtime, application auto scaling."""
