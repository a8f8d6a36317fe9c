"""What loads read and stores leave behind, and that no instance sees what another one writes. Read ``memory`` first."""
